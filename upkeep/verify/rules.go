package verify

// The other rules in defects and notes.
const (
	ruleCRC       = "crc"          // a line's checksum does not match
	ruleLine      = "line"         // an unreadable line
	ruleSession   = "session"      // a foreign line, of another session
	ruleSeq       = "seq"          // an event is missing, repeated or misplaced
	ruleChain     = "chain"        // an unchained event: its previous hash is not the hash of the event before
	ruleAppend    = "append"       // an append is incomplete
	ruleDuplicate = "duplicate"    // two events have one id
	ruleBlob      = "blob"         // a blob is missing or damaged
	rulePayload   = "payload"      // a payload breaks the rules of its type
	ruleTree      = "tree"         // a tree event is impossible
	ruleRedaction = "redaction"    // an unexplained erasure, or a redaction that did not erase
	ruleHead      = "head"         // readers see fewer events than are stored
	ruleIndex     = "index"        // an index lacks the event
	ruleRole      = "unknown_role" // a message has an unknown role
)

// The rules of notes about turns and runs.
const (
	ruleTurn   = "turn"   // a turn begins in an open turn
	ruleEffect = "effect" // an effect without intent, or an event of a completed effect
	ruleClaim  = "claim"  // a claim whose epoch is not the next one
	ruleReview = "review" // an answer to no open review
	ruleCursor = "cursor" // a cursor that was consumed before
)
