package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
)

// output is an answer with a body.
type output[T any] struct{ Body T }

// PageInput is the parameters of every paged list.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Most rows of the answer."`
	Cursor string `query:"cursor" maxLength:"4096" patternDescription:"next_cursor of an earlier answer to the same request, or no cursor for the first page" doc:"next_cursor of the page before; the filters must be the same."`
}

// Given tells which parameters a request has: an empty zone or an after of 0 is something else than none.
type Given struct{ query url.Values }

// Resolve is called by huma when the parameters have been read.
func (g *Given) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	g.query = u.Query()
	return nil
}

func (g *Given) has(name string) bool { return g.query.Has(name) }

// cut trims rows, of which one more than the limit was asked for, to the limit, and says whether there are more.
func cut[T any](rows []T, limit int) ([]T, bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

func (a *api) register(h huma.API) {
	const bad, missing = http.StatusBadRequest, http.StatusNotFound
	get := func(path, id, tag, summary, text string, errs ...int) huma.Operation {
		return operation(http.MethodGet, path, id, tag, summary, text, errs...)
	}
	huma.Register(h, get("/v1/services", "list-services", "registry", "List services",
		"By name. The parts of Upstrand itself (upstrand-…) are no services; see /v1/agents.", bad), a.listServices)
	huma.Register(h, get("/v1/services/{service}", "get-service", "registry", "Show a service", "", bad, missing), a.getService)
	huma.Register(h, get("/v1/services/{service}/instances", "list-service-instances", "registry", "List the instances of a service",
		"By id; each page is of one moment.", bad, missing), a.listServiceInstances)
	huma.Register(h, get("/v1/instances", "list-instances", "registry", "List instances",
		"Of all services, by service and id; each page is of one moment. Instances of upstrand-… services are listed only when service names them.", bad, missing), a.listInstances)
	huma.Register(h, get("/v1/instances/{service}/{id}", "get-instance", "registry", "Show an instance", "", bad, missing), a.getInstance)
	huma.Register(h, get("/v1/topology", "get-topology", "topology", "Show a topology version",
		"With a page of the records that are live in it, by key.", bad, missing), a.getTopology)
	huma.Register(h, get("/v1/topology/versions", "list-topology-versions", "topology", "List topology versions", "Newest first.", bad), a.listVersions)
	huma.Register(h, get("/v1/upstrands", "list-upstrands", "topology", "List upstrands",
		"Those of the newest topology version, derived and declared, by name, with how many servers their upstreams have. What a proxy remembers of them (where the next request begins, counts, all that is blacklisted) its admin address shows: /debug/upstrands.", bad), a.listUpstrands)
	huma.Register(h, get("/v1/upstrands/{name}", "get-upstrand", "topology", "Show an upstrand", "With the servers of its upstreams.", bad, missing), a.getUpstrand)
	huma.Register(h, get("/v1/agents", "list-agents", "topology", "List the agents",
		"Proxies, with the version that each serves compared with the newest one.", bad), a.listAgents)
	huma.Register(h, get("/v1/events", "list-events", "operations", "List or follow events",
		"Newest first. To follow: take last_seq of an answer, then ask with after=LAST_SEQ and wait_s=30 again and again, each time with the last_seq of the answer before. "+
			"An answer comes as soon as there is an event, or empty when the time is over (long poll). A last_seq below after means that the database was restored; go on from it.", bad), a.listEvents)
	huma.Register(h, get("/v1/streams", "list-streams", "operations", "List the partitions of the heartbeat topic",
		"Their clocks, positions, lag and owners.", bad), a.listStreams)
	huma.Register(h, get("/v1/rejected", "list-rejected", "operations", "List records that could not be used",
		"Newest first; a bounded number is kept.", bad), a.listRejected)
	a.registerDeclared(h)
	words(h, "/v1/events", "kind", registry.EventKinds())
	words(h, "/v1/rejected", "reason", rejectedReasons())
	post := operation(http.MethodPost, "/v1/beats", "post-beats", "beats", "Send beats",
		"For senders that can't speak Kafka. Valid beats are written to the heartbeat topic, whatever else is in the body. A beat with a port and no ip gets the address that the request comes from.",
		bad, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	post.DefaultStatus = http.StatusAccepted
	huma.Register(h, post, a.postBeats)
}

// registerDeclared adds what is about the declared topology.
func (a *api) registerDeclared(h huma.API) {
	const bad, missing = http.StatusBadRequest, http.StatusNotFound
	huma.Register(h, operation(http.MethodPost, "/v1/topology", "declare-topology", "topology", "Declare a file of the topology",
		"Upstreams, upstrands and routes in nginx's syntax, under a name. They win over derived ones of their names, and confgen publishes them with its next version. "+
			"All declared files are checked together against the live registry; the answer says what becomes of the published topology. To roll back, declare an old text again.",
		bad, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity), a.declare)
	get := func(path, id, summary, text string, errs ...int) huma.Operation {
		return operation(http.MethodGet, path, id, "topology", summary, text, errs...)
	}
	huma.Register(h, get("/v1/topology/declared", "get-declared", "List the declared files", "By name, without their texts."), a.getDeclared)
	huma.Register(h, get("/v1/topology/declared/{name}", "get-declared-file", "Show a declared file", "", bad, missing), a.getDeclaredFile)
	huma.Register(h, operation(http.MethodDelete, "/v1/topology/declared/{name}", "delete-declared-file", "topology", "Delete a declared file",
		"Its history is kept.", bad, http.StatusForbidden, missing, http.StatusConflict, http.StatusUnprocessableEntity), a.undeclare)
	huma.Register(h, get("/v1/topology/declared/{name}/history", "list-declared-history", "List the changes of a declared file", "Newest first, without texts; deletions are among them.", bad, missing), a.listDeclaredHistory)
	huma.Register(h, get("/v1/topology/declared/{name}/history/{revision}", "get-declared-revision", "Show a declared file as a change made it", "", bad, missing), a.getDeclaredRevision)
}

// words makes a list of words all that a parameter may be. Tags of the input can't hold what is said elsewhere already.
func words[T ~string](h huma.API, path, param string, list []T) {
	for _, p := range h.OpenAPI().Paths[path].Get.Parameters {
		if p.Name != param {
			continue
		}
		for _, word := range list {
			p.Schema.Items.Enum = append(p.Schema.Items.Enum, string(word))
		}
	}
}

// rejectedReasons are those of beats and those of records that are none.
func rejectedReasons() []string {
	return append(texts[string](heartbeat.Reasons()), registry.RejectedReasons()...)
}

// read bounds the database's time for one request.
func (a *api) read(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.cfg.ReadTimeout)
}

// unreadable is the answer to a failed read. The cause goes to the log, since it may name hosts and accounts.
func (a *api) unreadable(ctx context.Context, err error) *problem {
	if !errors.Is(ctx.Err(), context.Canceled) {
		a.cfg.Logger.Error().Err(err).Msg("read failed")
	}
	return newProblem(http.StatusServiceUnavailable, "the registry can't read its database now").retryAfter(2)
}

func isNotFound(err error) bool { return errors.Is(err, registry.ErrNotFound) }
