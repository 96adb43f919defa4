// Package dialect is the nginx syntax: it reads configuration files into a topology.Config (upstreams and upstrands) and
// the nodes of all else that stands in http {}, and checks them against a table of directives that says where each may
// stand, with how many arguments, and whether it is carried out, dropped with a notice, or refused with what to do
// instead. REFERENCE.md beside this file is that table for people.
//
// It is not the meaning of servers and locations: whoever compiles the nodes checks their values. Nor does it touch
// upstreams beyond their syntax: topology.Expand carries them out.
package dialect
