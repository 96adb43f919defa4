package dialect

import "strings"

// Context is a set of places in which a directive may stand.
type Context uint16

// The places.
const (
	Main Context = 1 << iota
	Events
	HTTP
	Server
	Location
	ServerIf   // if in server
	LocationIf // if in location
	Upstream
	Upstrand
	LimitExcept // limit_except in location
	Entries     // lines that are no directives: of map, types, geo, split_clients
	Dropped     // inside a block that is dropped as a whole

	// The sets that most directives have.
	hsl  = HTTP | Server | Location
	hs   = HTTP | Server
	hsli = hsl | LocationIf
	sili = Server | ServerIf | Location | LocationIf
)

var contextNames = []string{"main", "events", "http", "server", "location", "if in server", "if in location", "upstream", "upstrand", "limit_except"}

// String is the names of the places, with commas.
func (c Context) String() string {
	var names []string
	for i, name := range contextNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// inside is the place that a block directive makes of its block.
func inside(name string, in Context) Context {
	switch name {
	case "events":
		return Events
	case "http":
		return HTTP
	case "server":
		return Server
	case "location":
		return Location
	case "upstream":
		return Upstream
	case "upstrand":
		return Upstrand
	case "limit_except":
		return LimitExcept
	case "map", "types", "geo", "split_clients", "charset_map":
		return Entries
	case "if":
		if in == Server {
			return ServerIf
		}
		return LocationIf
	}
	return Dropped
}
