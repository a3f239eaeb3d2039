// Package line parses and renders the lines of a log. One event is one line. The
// package knows the envelope, the checksum and the hash chain (docs/FORMAT.md,
// chapters 1, 2 and 5), but no payloads.
//
// A canonical line has its members in this order, and no white space outside strings:
//
//	{"crc":"…","v":1,"seq":7,"id":"…","session_id":"…","type":"…","timestamp":"…","cost":0.01,"more":1,"cut":{…},
//	           └──────────────────────────────────────── header ───────────────────────────────────────────────┘
//	 "salt":"…","hash":"…","blobs":[…],"metadata":{…},"unknown":…,"data":{…}}
//	                                   └──────── meta ──────────┘ └── payload
//
// Parse slices a canonical line in one pass, and the parts share the line's bytes.
// Parse first converts a line with another member order or with white space to its
// canonical form, because crc and hash cover the canonical form.
package line
