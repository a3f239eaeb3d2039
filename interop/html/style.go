package html

import (
	"crypto/sha256"
	"encoding/base64"
)

// policy is the Content-Security-Policy of the page. It allows the page's style,
// images and sounds, and nothing else.
var policy = markup("default-src 'none'; style-src 'sha256-" + styleDigest() + "'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'")

func styleDigest() string {
	sum := sha256.Sum256([]byte(style))
	return base64.StdEncoding.EncodeToString(sum[:])
}

const style = `
:root { --back: #fff; --fore: #1c1e21; --dim: #6a737d; --line: #d8dde3; --code: #f4f6f8;
  --user: #1a7f37; --assistant: #0b62c4; --tool: #0e7c86; --system: #9a6700; --bad: #c62828; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --fore: #dfe3e8; --dim: #8d96a0; --line: #33383f; --code: #1f2329;
  --user: #57c26e; --assistant: #6cb0ff; --tool: #4fc3cf; --system: #d9a842; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 58rem; background: var(--back); color: var(--fore);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1 { margin: 0 0 .8rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2.2rem 0 .8rem; padding-top: .6rem; border-top: 1px solid var(--line); color: var(--dim); font-size: .95rem; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1.5rem; font-size: .87rem; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
section { margin: 1rem 0; padding: .1rem 0 .1rem .9rem; border-left: 3px solid var(--line); }
section:target { background: var(--code); }
.user { border-color: var(--user); } .user > .h b { color: var(--user); }
.assistant { border-color: var(--assistant); } .assistant > .h b { color: var(--assistant); }
.tool { border-color: var(--tool); } .tool > .h b { color: var(--tool); }
.system { border-color: var(--system); } .system > .h b { color: var(--system); }
.note { border-left-style: dashed; color: var(--dim); font-size: .9rem; }
.orphaned { opacity: .6; }
.h { margin-bottom: .2rem; font-size: .87rem; overflow-wrap: anywhere; }
.n { color: var(--dim); text-decoration: none; } .n:hover { text-decoration: underline; }
.w { color: var(--dim); font-size: .82rem; }
.h .w { margin-left: .5rem; }
.mark { margin-left: .5rem; padding: 0 .4rem; border: 1px solid var(--bad); border-radius: .6rem; color: var(--bad); font-size: .75rem; }
.t { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; margin: .3rem 0; }
pre, code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .82rem; }
pre { margin: .3rem 0; padding: .5rem .7rem; max-height: 40rem; overflow: auto; background: var(--code); border-radius: .3rem; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
code { overflow-wrap: anywhere; }
.call { margin: .5rem 0; } .a { color: var(--tool); }
.result { margin: .2rem 0 .2rem 1.1rem; } .error > .a { color: var(--bad); } .error > pre { border-left: 3px solid var(--bad); }
details { margin: .3rem 0; } summary { cursor: pointer; overflow-wrap: anywhere; } summary code { color: var(--dim); }
.r > .t { color: var(--dim); font-style: italic; }
img { display: block; max-width: 100%; max-height: 36rem; margin: .4rem 0; border: 1px solid var(--line); }
a { color: var(--assistant); }
footer { margin-top: 3rem; padding-top: .6rem; border-top: 1px solid var(--line); color: var(--dim); font-size: .82rem; }
@media print { pre { max-height: none; } section { break-inside: avoid-page; } }
`
