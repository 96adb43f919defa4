package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/deploy/rig"
)

// publisher is a confgen without a registry: it writes versions to the topic as one does.
type publisher struct {
	out     *kafka.Writer
	config  *topology.Config
	replica *topology.Replica
	version int64
}

const (
	benchEpoch = 1
	warmUp     = 50 // versions that are not counted: the broker's compiler has yet to see the code
)

// commits measures, in a world of its own, how long a version takes from the call that writes its commit record to the moment when
// the proxy has put it in force, by the clock that both share.
func commits(ctx context.Context, dir, program string, s settings) error {
	dir = filepath.Join(dir, "agent")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	w, err := rig.New(ctx, rig.Options{Parts: rig.RealParts, Times: rig.Full(), Binaries: rig.Binaries{Upstrand: program}, Dir: dir})
	if err != nil {
		return err
	}
	defer w.Close()
	t := w.Kafka.Transport()
	defer t.CloseIdleConnections()
	p := &publisher{config: services(s.published), replica: topology.NewReplica(),
		out: &kafka.Writer{Addr: kafka.TCP(w.Kafka.Addr), Topic: rig.TopicUpstreamConf, RequiredAcks: kafka.RequireAll, Transport: t,
			BatchTimeout: time.Millisecond, BatchBytes: 8 << 20}}
	defer p.out.Close()
	if _, _, err := p.publish(ctx); err != nil {
		return err
	}
	proxy, err := w.Proxy(ctx, "proxy", "--log-level", "info")
	if err != nil {
		return err
	}
	if err := proxy.AwaitReady(ctx, time.Minute); err != nil {
		return err
	}
	var took, written, applied []time.Duration
	for n := range warmUp + s.joins {
		p.config.Services[n%len(p.config.Services)].Instances[n%10].Weight = 2 + n
		began, acked, err := p.publish(ctx)
		if err != nil {
			return err
		}
		at, err := inForce(ctx, proxy, p.version)
		if err != nil {
			return err
		}
		if n >= warmUp {
			// The proxy can be faster than Kafka's answer to the writer.
			took, written, applied = append(took, at.Sub(began)), append(written, acked.Sub(began)), append(applied, max(0, at.Sub(acked)))
		}
		select { // versions come one by one, as joins do
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	fmt.Printf("commit to applied: %d instances, %d versions\n", s.published, len(took))
	for _, row := range []struct {
		what string
		d    []time.Duration
	}{
		{"from Kafka's acknowledgement of the commit record to the topology in force on the proxy", applied},
		{"from the call that writes the commit record to the topology in force on the proxy", took},
		{"of which until Kafka's acknowledgement", written},
	} {
		d := sortedCopy(row.d)
		fmt.Printf("  %-90s p50 %v, p99 %v, max %v\n", row.what, round(quantile(d, .5)), round(quantile(d, .99)), round(d[len(d)-1]))
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// services are n instances in services of perService.
func services(n int) *topology.Config {
	c := &topology.Config{}
	for k := 0; k*perService < n; k++ {
		name := fmt.Sprintf("service-%03d", k)
		sv := topology.Service{Name: name}
		for i := range min(perService, n-k*perService) {
			sv.Instances = append(sv.Instances, topology.Instance{ID: fmt.Sprintf("instance-%06d", i), Order: int64(k*perService + i + 1),
				Addr: fmt.Sprintf("10.0.%d.%d:8080", k, i%250), Weight: 1, Incarnation: 1_700_000_000_000, Version: "1.2.3"})
			if i >= 250 {
				sv.Instances[i].Addr = fmt.Sprintf("10.1.%d.%d:8080", k, i-250)
			}
		}
		c.Services = append(c.Services, sv)
		c.Upstreams = append(c.Upstreams, topology.Upstream{Name: name, Origin: topology.Derived, Directives: []topology.Directive{{"discover", name}}})
		c.Routes = append(c.Routes, topology.Route{Path: "/" + name, Origin: topology.Derived, Upstream: name})
	}
	return c
}

// publish writes what changed and the commit in one batch and says when it did so and when Kafka acknowledged it.
func (p *publisher) publish(ctx context.Context) (began, acked time.Time, err error) {
	p.version++
	records, err := topology.Encode(p.config)
	if err != nil {
		return began, acked, err
	}
	headers := []kafka.Header{{Key: topology.HeaderEpoch, Value: []byte(strconv.Itoa(benchEpoch))},
		{Key: topology.HeaderVersion, Value: strconv.AppendInt(nil, p.version, 10)}}
	var msgs []kafka.Message
	for _, r := range records {
		if string(p.replica.Get(r.Key)) != string(r.Value) {
			p.replica.Put(r.Key, r.Value, benchEpoch, p.version)
			msgs = append(msgs, kafka.Message{Key: []byte(r.Key), Value: r.Value, Headers: headers})
		}
	}
	digest, count := p.replica.Digest()
	commit, err := topology.Commit{Version: p.version, Epoch: benchEpoch, Digest: digest, Count: count, At: time.Now(), Cause: "bench"}.Encode()
	if err != nil {
		return began, acked, err
	}
	msgs = append(msgs, kafka.Message{Key: []byte(topology.KeyCommit), Value: commit, Headers: headers})
	p.out.BatchSize = len(msgs)
	began = time.Now()
	if err := p.out.WriteMessages(ctx, msgs...); err != nil {
		return began, acked, fmt.Errorf("publish version %d: %w", p.version, err)
	}
	return began, time.Now(), nil
}

// inForce waits until the proxy shows the version and returns since when it has been in force, by the proxy's own word.
func inForce(ctx context.Context, proxy *rig.Role, version int64) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var page struct {
		Version int64     `json:"version"`
		Applied time.Time `json:"built_at"`
	}
	err := rig.Until(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxy.Admin+"/debug/topology", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			return err
		}
		if page.Version != version {
			return fmt.Errorf("version %d is in force, not %d", page.Version, version)
		}
		return nil
	})
	return page.Applied, err
}
