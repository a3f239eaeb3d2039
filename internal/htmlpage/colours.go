package htmlpage

import (
	"embed"
	"html/template"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"

	"github.com/convlog/convlog/internal/transcript"
)

// lexerFiles are lexers of chroma. Its own package of lexers parses some hundred files when a
// program starts.
//
//go:embed lexers/*.xml
var lexerFiles embed.FS

// lexers are the lexers, parsed at the first use.
var lexers = sync.OnceValue(func() *chroma.LexerRegistry {
	all := chroma.NewLexerRegistry()
	files, _ := lexerFiles.ReadDir("lexers") // an embedded folder
	for _, f := range files {
		if lexer, err := chroma.NewXMLLexer(lexerFiles, path.Join("lexers", f.Name())); err == nil {
			all.Register(lexer)
		}
	}
	return all
})

// The bounds of colours: longer texts have none. A text can be made so that a lexer takes long, so
// a page has no more colours once it has used this time.
const (
	maxColoured = 64 << 10
	colourTime  = 2 * time.Second
)

// code is a text with the colours of a language: the name of a language, or of a file.
func (v *View) code(text, language string) template.HTML {
	text = transcript.Visible(text)
	var lexer chroma.Lexer
	if !v.Plain {
		lexer = lexerFor(language)
	}
	if lexer == nil || len(text) > maxColoured || v.coloured > colourTime {
		return template.HTML(template.HTMLEscapeString(text))
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return template.HTML(template.HTMLEscapeString(text))
	}
	var b strings.Builder
	written, begin := 0, time.Now()
	defer func() { v.coloured += time.Since(begin) }()
	for t := tokens(); t != chroma.EOF; t = tokens() {
		if v.coloured+time.Since(begin) > colourTime || !strings.HasPrefix(text[written:], t.Value) {
			break // the rest has no colours
		}
		written += len(t.Value)
		writeToken(&b, t)
	}
	b.WriteString(template.HTMLEscapeString(text[written:]))
	return template.HTML(b.String())
}

func lexerFor(language string) chroma.Lexer {
	if language == "" {
		return nil
	}
	if lexer := lexers().Get(language); lexer != nil {
		return lexer
	}
	return lexers().Match(path.Base(language))
}

func writeToken(b *strings.Builder, t chroma.Token) {
	class := tokenClass(t.Type)
	if class == "" {
		b.WriteString(template.HTMLEscapeString(t.Value))
		return
	}
	b.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(t.Value) + `</span>`)
}

// tokenClass is the class of a token in the style sheet; empty for none.
func tokenClass(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "tc"
	case t.InCategory(chroma.Keyword), t == chroma.NameTag:
		return "tk"
	case t.InSubCategory(chroma.LiteralString):
		return "ts"
	case t.InSubCategory(chroma.LiteralNumber):
		return "tn"
	case t == chroma.NameFunction, t == chroma.NameClass, t == chroma.NameBuiltin, t == chroma.NameAttribute:
		return "tf"
	case t == chroma.GenericDeleted:
		return "gd"
	case t == chroma.GenericInserted:
		return "gi"
	}
	return ""
}
