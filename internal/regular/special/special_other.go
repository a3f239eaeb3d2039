//go:build !unix

package special

// systemKinds returns none: named pipes and sockets have no names in a folder.
func systemKinds() []Kind { return nil }
