// Package browser tests the pages of this repository in Chromium. It is a module of its own,
// so that the main module does not require the driver.
package browser
