// Package rawjson checks JSON and takes it apart without decoding it: member
// names and values stay the bytes that were read, so numbers keep their digits
// and objects their order.
//
// A [Scanner] is several times faster than a decoder, but it may be unsure of a
// text. The functions ([Members], [Elements], [Compact], …) fall back to a
// decoder where the scanner is unsure, so their answers are exact.
package rawjson
