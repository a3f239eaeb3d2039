package eventlog

// As returns the ability T of a store, and false if the store lacks it. It also looks
// in the stores that wrappers return from a method Unwrap() Store.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if ability, ok := s.(T); ok {
			return ability, true
		}
		if split, ok := s.(interface{ abilities() []any }); ok {
			for _, part := range split.abilities() {
				if ability, ok := part.(T); ok {
					return ability, true
				}
			}
		}
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = wrapper.Unwrap()
	}
	var none T
	return none, false
}
