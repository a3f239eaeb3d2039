package web

import "slices"

// Routes are the routes of the API with the parameters of their queries.
func Routes() map[string][]string {
	all := map[string][]string{}
	for _, x := range routes() {
		all[x.pattern] = slices.Clone(x.query)
	}
	return all
}
