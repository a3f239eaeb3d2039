// Package render serves the exporters that render a history as a request of a
// provider. It makes valid names and ids, loads the bodies of images and documents,
// and parses a request to check it.
package render
