// Package render serves the exporters that render a history as a request of a
// provider. It gives calls valid ids, loads the bodies of images and documents, and
// writes a request element by element.
package render
