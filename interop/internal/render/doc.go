// Package render holds what the renderings of a history into providers'
// requests share: names and ids that a provider takes, bodies of images and
// documents, and reading a request back to check it.
package render
