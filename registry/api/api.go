// Package api is the registry's HTTP API: what the registry knows of services, instances, proxies, topology versions,
// events and streams, for people and tools; POST /v1/beats for senders that can't speak Kafka; and POST /v1/topology, by
// which operators declare upstreams, upstrands and routes.
//
// It reads the database, and writes nothing to it but what is declared: beats go to Kafka like everyone's, and take effect
// when a listener applies them; a declared topology takes effect when confgen publishes it. Nothing that serves traffic calls it, so it may be down. It knows no users and gives no permissions:
// whoever reaches its port may use it.
package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/registry"
)

// Reader is what the API reads. *registry.Store satisfies it.
type Reader interface {
	ListServices(context.Context, registry.ServiceFilter) ([]registry.ServiceView, error)
	GetService(ctx context.Context, name string) (registry.ServiceView, error)
	KnownServices(ctx context.Context, names []string) ([]string, error)
	ListInstances(context.Context, registry.InstanceFilter) ([]registry.InstanceView, error)
	GetInstance(ctx context.Context, service, id string) (registry.InstanceView, error)
	ListAgents(ctx context.Context, after *registry.InstanceKey, limit int) ([]registry.AgentView, error)
	ListEvents(context.Context, registry.EventFilter) ([]registry.Event, error)
	LastEventSeq(context.Context) (int64, error)
	Streams(context.Context) ([]registry.StreamState, error)
	ListRejected(context.Context, registry.RejectedFilter) ([]registry.RejectedView, error)
	RejectedCounts(context.Context, registry.RejectedFilter) ([]registry.ReasonCount, error)
	ListVersions(ctx context.Context, before int64, limit int) ([]registry.Version, error)
	GetVersion(ctx context.Context, version int64) (registry.Version, error)
	VersionsAfter(ctx context.Context, version int64) ([]int64, error)
	VersionRecords(ctx context.Context, version int64, prefix, after string, limit int) ([]registry.TopologyRecord, error)
	Declared(context.Context) (registry.Declaration, error)
	DeclaredAt(ctx context.Context, name string, revision int64) (registry.DeclaredFile, error)
	DeclaredHistory(ctx context.Context, name string, before int64, limit int) ([]registry.DeclaredFile, error)
}

// Declarer keeps what operators declare. *registry.Store satisfies it.
type Declarer interface {
	Snapshot(context.Context) (registry.Snapshot, error)
	Declare(context.Context, registry.Declare) (done registry.DeclaredFile, changed bool, err error)
}

// Message is a record for the heartbeat topic.
type Message struct{ Key, Value []byte }

// Publisher writes to the heartbeat topic.
type Publisher interface {
	// Publish writes the messages in their order, acknowledged by all replicas, before ctx ends. Nil: all are in the
	// log. Otherwise there is one entry for each message, nil for those that are in the log.
	Publish(ctx context.Context, messages []Message) []error
}

// Config is what the API is built from.
type Config struct {
	Store     Reader    // required
	Publisher Publisher // nil: POST /v1/beats answers 503
	Declarer  Declarer  // nil: POST /v1/topology answers 503
	Logger    zerolog.Logger
	// Registerer takes the metrics upstrand_api_…; nil: none are kept.
	Registerer prometheus.Registerer
	// Closing, when closed, ends waiting requests (GET /v1/events?wait_s=…) at once, so that a server that shuts down
	// does not wait for them. Nil: they end by themselves.
	Closing <-chan struct{}

	ReadTimeout    time.Duration // of the database, for one request; 0: 10 s
	PublishTimeout time.Duration // of Kafka, for one request; 0: 5 s
	EventPoll      time.Duration // how often a waiting request looks for new events; 0: 250 ms
	MaxWaiting     int           // how many requests may wait for events at once; 0: 256
	// Now is the wall clock, for ages that are wall time; nil: time.Now.
	Now func() time.Time
}

// The largest body that POST /v1/beats reads, and the most beats in it.
const (
	MaxBody  = 4 << 20
	MaxBeats = 1000
)

type api struct {
	cfg      Config
	store    Reader
	metrics  *metrics
	waiting  chan struct{} // one entry for each request that waits for events
	planning chan struct{} // one entry for each request that plans a change of what is declared

	publishing trouble // of writing beats
	strands    strandViews
}

// New builds the handler for /v1/… and /openapi.json. It starts nothing. The server should have no write timeout
// below 60 s, since a request may wait for events for 30 s.
func New(cfg Config) (http.Handler, error) {
	if cfg.Store == nil {
		return nil, errors.New("registry api: no store")
	}
	setDefault(&cfg.ReadTimeout, 10*time.Second)
	setDefault(&cfg.PublishTimeout, 5*time.Second)
	setDefault(&cfg.EventPoll, 250*time.Millisecond)
	setDefault(&cfg.MaxWaiting, 256)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	a := &api{cfg: cfg, store: cfg.Store, metrics: m, waiting: make(chan struct{}, cfg.MaxWaiting), planning: make(chan struct{}, 2)}
	mux := http.NewServeMux()
	h := humago.New(mux, humaConfig())
	h.UseMiddleware(checkParams)
	a.register(h)
	document, err := finishDocument(h.OpenAPI())
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
	mux.Handle("/", fallback(mux, h.OpenAPI()))
	return a.serve(mux), nil
}

func setDefault[T int | time.Duration](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}
