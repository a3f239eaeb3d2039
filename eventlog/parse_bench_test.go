package eventlog

import "testing"

func BenchmarkParseLine(b *testing.B) {
	e := sample(b)
	plain, err := NewUserMessage("a message of ordinary length, such as people write to their agents every day")
	if err != nil {
		b.Fatal(err)
	}
	plain.Seq, plain.SessionID = 1, "order-42"
	plain = sealed(b, plain, Hash{})
	for name, line := range map[string][]byte{"plain": plain.Line(), "everything": e.Line()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if _, err := ParseLine(line, "order-42"); err != nil && name == "plain" {
					b.Fatal(err)
				}
			}
		})
	}
}
