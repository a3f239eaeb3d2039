package claude

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// script adds lines to a tree. A step is "uuid kind parent [group]". The result lists
// the uuids in order, and >n before a line if the head moves to event n (from 1).
func script(t *testing.T, steps ...string) string {
	t.Helper()
	kinds := map[string]kind{"note": annotation, "prompt": promptLine, "reply": assistantLine, "answer": toolLine, "compact": boundaryLine}
	tr, seq := newTree(), int64(0)
	var log []string
	for _, step := range steps {
		f := append(strings.Fields(step), "", "")
		k, ok := kinds[f[1]]
		if !ok {
			t.Fatalf("step %q: unknown kind", step)
		}
		l := line{uuid: f[0], kind: k, parent: strings.Trim(f[2], "-")}
		switch {
		case k == assistantLine:
			l.group = f[3]
		case strings.HasPrefix(f[3], "x="):
			l.retracts = strings.Split(f[3][2:], ",")
		case k == boundaryLine:
			l.tail = f[3]
		}
		if to, ok := tr.move(l); ok {
			seq++
			tr.moved(seq, to)
			log = append(log, fmt.Sprintf(">%d", to))
		}
		seq++
		tr.add(l, seq)
		log = append(log, l.uuid)
	}
	return strings.Join(log, " ")
}

func TestTree(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []string
		want  string
	}{
		{
			"a chain",
			[]string{"u prompt -", "a reply u m1", "v prompt a", "b reply v m2"},
			"u a v b",
		},
		{
			"parallel calls and their results are no branch",
			[]string{"u prompt -", "a reply u m1", "b reply a m1", "ra answer a", "rb answer b", "c reply ra m2", "v prompt c"},
			"u a b ra rb c v",
		},
		{
			"parts of one message with one parent are no branch",
			[]string{"u prompt -", "a reply u m1", "b reply u m1", "c reply a m2"},
			"u a b c",
		},
		{
			"a note is no branch, and its child follows its parent",
			[]string{"u prompt -", "a reply u m1", "n note a", "o note n", "p note a", "ra answer a", "b reply o m2", "q note a", "v prompt q"},
			"u a n o p ra b q >6 v",
		},
		{
			"two prompts after one line are a branch",
			[]string{"u prompt -", "a reply u m1", "v prompt a", "b reply v m2", "w prompt a", "c reply w m3"},
			"u a v b >2 w c",
		},
		{
			"two answers to one prompt are a branch",
			[]string{"u prompt -", "a reply u m1", "b reply u m2"},
			"u a >1 b",
		},
		{
			"results before a branch stay on both sides",
			[]string{"u prompt -", "a reply u m1", "b reply a m1", "ra answer a", "rb answer b", "v prompt ra", "w prompt rb"},
			"u a b ra rb v >5 w",
		},
		{
			"a third branch leaves from the same point",
			[]string{"u prompt -", "v prompt u", "w prompt u", "x prompt u"},
			"u v >1 w >1 x",
		},
		{
			"a rewind to the start",
			[]string{"n note -", "u prompt n", "a reply u m1", "v prompt n"},
			"n u a >1 v",
		},
		{
			"lines of two branches in turn",
			[]string{"u prompt -", "a reply u m1", "b reply u m2", "ra answer a", "rb answer b", "c reply ra m3", "d reply rb m4"},
			"u a >1 b >2 ra >4 rb >6 c >8 d",
		},
		{
			"a branch within an inactive branch",
			[]string{"u prompt -", "v prompt u", "w prompt v", "x prompt u", "y prompt v"},
			"u v w >1 x >2 y",
		},
		{
			"an inactive branch continues at its newest line",
			[]string{"u prompt -", "a reply u m1", "b reply u m2", "c reply a m3", "d reply b m4", "e answer a"},
			"u a >1 b >2 c >4 d >6 e",
		},
		{
			"an orphan follows the line before it",
			[]string{"u prompt -", "a reply u m1", "v prompt gone", "b reply v m2", "w prompt -"},
			"u a v b w",
		},
		{
			"the child of a late result follows the result",
			[]string{"u prompt -", "a reply u m1", "v prompt a", "ra answer a", "b reply ra m2"},
			"u a v ra b",
		},
		{
			"a repeated line is no branch",
			[]string{"u prompt -", "a reply u m1", "u prompt -", "a reply u m1", "v prompt a"},
			"u a u a v",
		},
		{
			"a compaction follows its logical parent",
			[]string{"u prompt -", "a reply u m1", "k compact a", "s answer k", "v prompt s"},
			"u a k s v",
		},
		{
			"a compaction whose logical parent is missing follows the line before it",
			[]string{"u prompt -", "a reply u m1", "k compact gone", "s answer k", "v prompt s"},
			"u a k s v",
		},
		{
			"a rewind to before a compaction",
			[]string{"u prompt -", "a reply u m1", "k compact a", "s answer k", "v prompt a"},
			"u a k s >2 v",
		},
		{
			"the child of a kept line follows the compaction",
			[]string{"u prompt -", "a reply u m1", "k compact a a", "s answer k", "v prompt a"},
			"u a k s v",
		},
		{
			"retracted lines leave the path",
			[]string{"u prompt -", "a reply u m1", "b reply a m1", "n note b x=a,b", "c reply n m2", "v prompt c"},
			"u a b >1 n c v",
		},
		{
			"a line with a child is not retracted",
			[]string{"u prompt -", "a reply u m1", "v prompt a", "n note v x=a", "w prompt v"},
			"u a v n w",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, script(t, test.steps...)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}
