package wire

// DeclareRequest declares a file of the topology: upstreams, upstrands and routes in nginx's syntax.
type DeclareRequest struct {
	Name     string `json:"name,omitempty" maxLength:"64" doc:"Which file; main unless given. Its new text takes the place of the old one."`
	Text     string `json:"text" doc:"The file: upstream, upstrand, and server blocks of routes."`
	Author   string `json:"author" maxLength:"128" doc:"Who asks, such as USER@HOST."`
	Comment  string `json:"comment,omitempty" maxLength:"1024" doc:"Why."`
	DryRun   bool   `json:"dry_run,omitempty" doc:"Say what would happen, and change nothing."`
	Expected *int64 `json:"expected_revision,omitempty" minimum:"0" doc:"Revision of the declared topology that the change was made for; when it is at another one, 409. 0: nothing was ever declared. Absent: any."`
}

// DeclareAnswer is what a change of the declared topology does, or would do.
type DeclareAnswer struct {
	Applied  bool             `json:"applied" doc:"Whether it was carried out: not in a dry run, and not when the file has this text already."`
	Revision int64            `json:"revision" doc:"Of the declared topology: after the change, or, when there was none, as it is."`
	Registry int64            `json:"registry_revision" doc:"Registry revision of that: a topology version with this revision or a higher one has it."`
	Summary  string           `json:"summary" example:"2 upstreams added, 1 route gives way" doc:"The changes, counted."`
	Changes  []TopologyChange `json:"changes" doc:"What becomes of the published topology, derived parts included: upstreams, upstrands, routes, each by name."`
	Records  int              `json:"records" doc:"Records of the topology that are written or removed; with 0 no version follows."`
	Warnings []Remark         `json:"warnings" doc:"What may not be meant, by file and line."`
}

// What becomes of a part of the topology.
const (
	ChangeAdded    = "added"
	ChangeRemoved  = "removed"
	ChangeChanged  = "changed"
	ChangeGivesWay = "gives way" // a derived one to a declared one
	ChangeReturns  = "returns"   // a derived one, where a declared one was
)

// TopologyChange is what becomes of one upstream, upstrand or route.
type TopologyChange struct {
	Kind   string        `json:"kind" enum:"upstream,upstrand,route"`
	Name   string        `json:"name" doc:"Of a route: host and path."`
	Change string        `json:"change" enum:"added,removed,changed,gives way,returns" doc:"gives way: a derived one to a declared one of its name; returns: the derived one, where a declared one was."`
	Before *TopologySide `json:"before,omitempty" doc:"Absent: it is not there."`
	After  *TopologySide `json:"after,omitempty" doc:"Absent: it will not be there."`
}

// TopologySide is how a part of the topology stands.
type TopologySide struct {
	Origin string   `json:"origin" enum:"derived,declared"`
	Lines  []string `json:"lines" doc:"Its directives."`
	Peers  *int     `json:"peers,omitempty" doc:"Servers and live instances of an upstream, for a proxy without a zone; a name that proxies look up counts as one."`
}

// Remark is something about a line of a declared file.
type Remark struct {
	File      string `json:"file,omitempty" doc:"Name that the file is declared under."`
	Line      int    `json:"line,omitempty" doc:"From 1; absent: the whole."`
	Directive string `json:"directive,omitempty"`
	Message   string `json:"message"`
	Allowed   string `json:"allowed,omitempty"`
}

// DeclaredFile is a file of the declared topology as one change made it.
type DeclaredFile struct {
	Name     string  `json:"name"`
	Revision int64   `json:"revision" doc:"Of the declared topology: the change that made the file so."`
	Deleted  bool    `json:"deleted,omitempty" doc:"The change took the file out."`
	Author   string  `json:"author"`
	Comment  string  `json:"comment"`
	At       Time    `json:"at" format:"date-time"`
	Bytes    int     `json:"bytes"`
	Registry int64   `json:"registry_revision" doc:"Registry revision of that change."`
	Text     *string `json:"text,omitempty" doc:"Absent in lists, and of a deletion."`
}

// DeclaredTopology is the declared files that are in force, by name.
type DeclaredTopology struct {
	Revision int64          `json:"revision" doc:"Counts the changes of all files together; 0: nothing was ever declared."`
	Files    []DeclaredFile `json:"files"`
	Last     *DeclaredFile  `json:"last_change,omitempty" doc:"The newest change, which may be a deletion."`
}

// DeclaredHistory is a page of the changes of one file, newest first.
type DeclaredHistory struct {
	Changes    []DeclaredFile `json:"changes"`
	NextCursor string         `json:"next_cursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}
