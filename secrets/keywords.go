package secrets

// keywords is an automaton that finds all keywords of all rules in one pass over a text
// (Aho and Corasick). It ignores the case of ASCII letters.
type keywords struct {
	class   [256]uint8 // the class of each byte; 0 is a byte of no keyword
	classes int
	next    []uint32 // the next state, by state and class
	found   [][]hit  // the keywords that end in a state
}

// hit is a keyword of a rule.
type hit struct {
	rule   int
	length int
}

// newKeywords builds the automaton for the keywords of each rule.
func newKeywords(rules []Rule) *keywords {
	k := &keywords{classes: 1}
	for _, r := range rules {
		for _, word := range r.Keywords {
			for _, b := range []byte(word) {
				k.addClass(b)
			}
		}
	}
	k.addState()
	for i, r := range rules {
		for _, word := range r.Keywords {
			k.add(word, i)
		}
	}
	k.link()
	return k
}

func (k *keywords) addClass(b byte) {
	if k.class[b] != 0 {
		return
	}
	k.class[b] = uint8(k.classes)
	if 'a' <= b && b <= 'z' {
		k.class[b-'a'+'A'] = uint8(k.classes)
	}
	k.classes++
}

func (k *keywords) addState() uint32 {
	k.next = append(k.next, make([]uint32, k.classes)...)
	k.found = append(k.found, nil)
	return uint32(len(k.found) - 1)
}

// add adds the states of a keyword.
func (k *keywords) add(word string, rule int) {
	state := uint32(0)
	for _, b := range []byte(word) {
		at := int(state)*k.classes + int(k.class[b])
		if k.next[at] == 0 {
			fresh := k.addState()
			k.next[at] = fresh
		}
		state = k.next[at]
	}
	k.found[state] = append(k.found[state], hit{rule, len(word)})
}

// link adds to each state the transitions and keywords of its longest proper suffix.
func (k *keywords) link() {
	suffix := make([]uint32, len(k.found))
	var queue []uint32
	for _, to := range k.next[:k.classes] {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		state := queue[0]
		own, other := k.row(state), k.row(suffix[state])
		k.found[state] = append(k.found[state], k.found[suffix[state]]...)
		for c, to := range own {
			if to == 0 {
				own[c] = other[c]
				continue
			}
			suffix[to] = other[c]
			queue = append(queue, to)
		}
	}
}

func (k *keywords) row(state uint32) []uint32 {
	return k.next[int(state)*k.classes : (int(state)+1)*k.classes]
}

// in reports whether text has a keyword.
func (k *keywords) in(text []byte) bool {
	state := uint32(0)
	for _, b := range text {
		if state = k.next[int(state)*k.classes+int(k.class[b])]; state != 0 && k.found[state] != nil {
			return true
		}
	}
	return false
}

// each calls fn with each keyword in text and the offset where it begins.
func (k *keywords) each(text []byte, fn func(rule, at int)) {
	state := uint32(0)
	for i, b := range text {
		if state = k.next[int(state)*k.classes+int(k.class[b])]; state != 0 {
			for _, h := range k.found[state] {
				fn(h.rule, i+1-h.length)
			}
		}
	}
}
