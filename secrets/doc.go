// Package secrets finds credentials in text and in events: API keys, tokens, private
// keys and passwords. A Policy screens the events of an append (it warns, masks or refuses),
// Scan lists the secrets of a store, and View is a store that shows masks instead of
// secrets.
//
//	policy := secrets.Policy{Scanner: secrets.Default(), Mask: true}
//	log := eventlog.Open(store, eventlog.Options{Hook: policy.Event, BodyHook: policy.Body})
//
// A mask is [secret:RULE]: the name of the rule, and nothing of the secret, not even a
// hash. An event with a mask has the rules in its metadata (event.Event.Masked). Two
// events with a mask are the same if their ids and types are equal, so a retry and a
// second import find the event that is stored, also with newer rules.
//
// The package reads every string of data, metadata and unknown envelope members, the
// names of members, spilled data, and bodies of text. It does not read bodies of other
// kinds (images, archives, UTF-16), strings in base64, and the ids, types and times of
// events. A rule knows the form of a secret: a secret of an unknown form is not found.
package secrets
