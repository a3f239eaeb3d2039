// Package line reads and writes the bytes of a log: one event is one line. It
// knows the envelope, the checksum and the hash chain (docs/FORMAT.md, chapters
// 1, 2 and 5), and nothing about payloads.
//
// A canonical line has its members in this order, and no white space outside
// strings:
//
//	{"crc":"…","v":1,"seq":7,"id":"…","session_id":"…","type":"…","timestamp":"…","cost":0.01,"more":1,"cut":{…},
//	           └──────────────────────────────────────── header ───────────────────────────────────────────────┘
//	 "salt":"…","hash":"…","blobs":[…],"metadata":{…},"unknown":…,"data":{…}}
//	                                   └──────── meta ──────────┘ └── payload
//
// Parse slices a canonical line in one pass: the parts share the line's bytes. A
// line with other member order or white space goes through a full parse that
// renders it canonically first, since crc and hash are defined over that
// rendering.
package line
