// Package site carries out what stands in a configuration file's server and location blocks, as nginx does: which server
// and location a request belongs to, what becomes of its path on the way there, whether it may, and who answers it.
//
// Compile turns the blocks into a Site once; Handle serves requests by it. A request goes through nginx's phases:
// the server's rewrite directives, the search for a location, that location's rewrite directives, access, try_files,
// content, and at last the log. An error may lead through error_page into another round; there are at most 10.
//
// It knows no file syntax (confgen/dialect reads that), no peers (proxy/balance picks them) and no wire: it stands
// between an engine, which calls Handle, and package forward, which it asks to carry requests to upstreams. It serves no
// files.
package site
