// Package rawjson validates and splits JSON without decoding it. Member names and
// values keep their bytes, so numbers keep their digits and objects keep their order.
//
// An internal scanner, several times faster than a decoder, handles common JSON. Rare
// JSON goes to a decoder, so all results are exact. All functions are safe for
// concurrent use.
package rawjson
