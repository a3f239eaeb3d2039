// Package htmlpage renders sessions as HTML: the layout and the style of pages, the entries of a
// conversation, Markdown, colours of code, and diffs. Package web serves such pages, and
// interop/html writes sessions as files.
//
// Every text of a session is escaped. Markdown has no raw HTML, links lead to http and https
// only, and images are raster images.
package htmlpage
