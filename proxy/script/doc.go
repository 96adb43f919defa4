// Package script is the part of the configuration language that is computed for each request: texts with variables,
// variables that are set, captures of regular expressions, and maps from one text to another. All of it is compiled once;
// what it computes for a request lies in a State, which the request carries.
//
// It is generic over the request and knows no variable by itself: the names come from whoever builds a Compiler. It is
// not a language with control flow; who carries out conditions and jumps asks it for values.
//
// Lifetimes are nginx's. A variable that was set, or named in a regular expression that matched, keeps its value until it
// is written again, also over internal redirects. A map is looked up once for a request, unless it is volatile. $1 to $9
// are of the last regular expression that matched, whichever that was, a map's included.
//
// Regular expressions are Go's (RE2): linear in the length of what they match, but without lookaround and
// backreferences; a pattern that has one is refused. They match bytes, as nginx's do.
package script
