package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/heartbeat/sidecar"
)

// Beat is the settings of the sidecar that beats for a service of any language.
type Beat struct {
	beat          heartbeat.Beat
	interval      time.Duration
	staleAfter    time.Duration
	failTimeout   time.Duration
	slowStart     time.Duration
	maxFails      int
	check         string
	checkInterval time.Duration
	checkTimeout  time.Duration
	rise, fall    int
	leaveWait     time.Duration
	stopTimeout   time.Duration
}

// notGiven is the --max-fails of who leaves it to the default.
const notGiven = -1

// Flags declares the settings in their groups.
func (b *Beat) Flags(set *settings.Set) {
	g := set.Group("Service")
	g.String(&b.beat.Service, "service", "", "name of the service; needed")
	g.String(&b.beat.ID, "id", "", "name of this instance within the service, the same over restarts; absent: host name and port")
	g.Choice(&b.beat.Scheme, "scheme", "http", "how to speak to it", "http", "https")
	g.IP(&b.beat.IP, "ip", "", "address at which proxies reach it; absent: that of the way to the first broker")
	g.Int(&b.beat.Port, "port", 0, 1, 65535, "port at which proxies reach it; needed")
	g.String(&b.beat.URL, "url", "", "path that the service serves, such as /orders/; absent: it gets no route of its own")
	g.Int(&b.beat.Weight, "weight", 1, 1, 65535, "share of the traffic, relative to the other instances")
	g.Int(&b.beat.MaxConns, "max-conns", 0, 0, 1_000_000, "most requests at a time from one proxy; 0: no limit")
	g.Int(&b.maxFails, "max-fails", notGiven, notGiven, 1_000_000, "failures within --fail-timeout after which a proxy leaves it alone for as long; 0: never; -1: the proxies' default, 1")
	g.Duration(&b.failTimeout, "fail-timeout", 0, 0, 24*time.Hour, "see --max-fails; 0: the proxies' default, 10s")
	g.Duration(&b.slowStart, "slow-start", 0, 0, 24*time.Hour, "time in which the weight grows to its value after a start; 0: at once. Proxies are told, and do not act on it yet")
	g.String(&b.beat.Zone, "zone", "", "zone that it stands in")
	g.String(&b.beat.Version, "version", "", "version of the service")
	g.Words(&b.beat.Tags, "tag", "tags, for people and tools: instance ls --tag")
	g.Pairs(&b.beat.Meta, "meta", "labels that nobody interprets")
	g = set.Group("Beats")
	g.Duration(&b.interval, "interval", 10*time.Second, 100*time.Millisecond, 5*time.Minute, "how often to beat")
	g.Duration(&b.staleAfter, "stale-after", 0, 0, time.Hour, "silence after which the instance is taken out; 0: three intervals, at least 3s")
	b.checkFlags(set)
}

func (b *Beat) checkFlags(set *settings.Set) {
	g := set.Group("Check and child")
	g.String(&b.check, "check", "", "what tells that the service is well: http://…, https://…, tcp://host:port, exec:command line or none; absent: a TCP connection to ip and port")
	g.Duration(&b.checkInterval, "check-interval", 2*time.Second, 10*time.Millisecond, 10*time.Minute, "from one check to the next")
	g.Duration(&b.checkTimeout, "check-timeout", time.Second, 10*time.Millisecond, time.Minute, "longest time of one check")
	g.Int(&b.rise, "rise", 2, 1, 100, "checks that must succeed in a row before beats begin")
	g.Int(&b.fall, "fall", 3, 1, 100, "checks that must fail in a row before goodbye is said")
	g.Duration(&b.leaveWait, "leave-wait", time.Second, 0, 10*time.Minute, "from the goodbye to the child's signal, for proxies to move on")
	g.Duration(&b.stopTimeout, "stop-timeout", 10*time.Second, 100*time.Millisecond, time.Hour, "from the child's signal to its kill")
	set.Check(func() settings.Problems { return b.problems(set) })
}

// problems lets the sidecar judge the settings: it knows what a beat may say.
func (b *Beat) problems(set *settings.Set) (ps settings.Problems) {
	// What is missing gets a stand-in, so that the rest is judged all the same.
	judged := *b
	if b.beat.Service == "" {
		ps = append(ps, settings.Problem{Flag: "service", Allowed: "needed: the name of the service"})
		judged.beat.Service = "service"
	}
	if b.beat.Port == 0 {
		ps = append(ps, settings.Problem{Flag: "port", Allowed: "needed: the port of the service"})
		judged.beat.Port = 1
	}
	if heartbeat.IsAgent(b.beat.Service) {
		ps = append(ps, settings.Problem{Flag: "service", Value: b.beat.Service, Allowed: "allowed: a name that does not begin with upstrand-, as those of our own parts do"})
	}
	conf, err := judged.config(nil)
	if err != nil {
		ps = append(ps, settings.Problem{Flag: "check", Value: b.check, Allowed: err.Error()})
	}
	conf.Sender.Brokers = []string{"127.0.0.1:1"}
	_, err = sidecar.New(conf)
	var invalid *heartbeat.InvalidError
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			ps = append(ps, problemOf(set, p))
		}
	case err != nil:
		ps = append(ps, settings.Problem{Allowed: strings.ReplaceAll(err.Error(), "\n", "\n  ")})
	}
	return ps
}

// problemOf names the flag of the field that is wrong.
func problemOf(set *settings.Set, p heartbeat.Problem) settings.Problem {
	flag, _, _ := strings.Cut(p.Field, ".")
	flag, _, _ = strings.Cut(flag, "[")
	if flag = strings.ReplaceAll(flag, "_", "-"); flag == "tags" {
		flag = "tag"
	}
	if !set.Has(flag) {
		return settings.Problem{Allowed: p.String()}
	}
	text := p.Message
	if p.Allowed != "" {
		text += " (allowed: " + p.Allowed + ")"
	}
	return settings.Problem{Flag: flag, Value: set.Text(flag), Allowed: text}
}

// Arguments says what is wrong with the service's command.
func (b *Beat) Arguments(command []string) settings.Problems {
	if len(command) == 0 {
		return nil
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return settings.Problems{{Allowed: "the command after -- can't be run: " + err.Error()}}
	}
	return nil
}

// config is all that does not depend on the process. command is the child's; none: the service runs by itself.
func (b *Beat) config(command []string) (sidecar.Config, error) {
	beat := b.beat
	beat.Interval, beat.StaleAfter = heartbeat.Duration(b.interval), heartbeat.Duration(b.staleAfter)
	beat.FailTimeout, beat.SlowStart = heartbeat.Duration(b.failTimeout), heartbeat.Duration(b.slowStart)
	if b.maxFails != notGiven {
		beat.MaxFails = &b.maxFails
	}
	if beat.ID == "" {
		beat.ID = defaultID(beat.Port)
	}
	conf := sidecar.Config{
		Sender:        heartbeat.Config{Beat: beat},
		CheckInterval: b.checkInterval, CheckTimeout: b.checkTimeout, Rise: b.rise, Fall: b.fall,
		Command: command, LeaveWait: b.leaveWait, StopTimeout: b.stopTimeout,
	}
	if conf.LeaveWait == 0 {
		conf.LeaveWait = -1 // the sidecar's word for none
	}
	if b.check == "" {
		return conf, nil
	}
	check, err := sidecar.ParseCheck(b.check)
	conf.Check = check
	return conf, err
}

// Run beats until ctx ends or the child does, and returns the exit code that the process should have.
func (b *Beat) Run(ctx context.Context, p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, command []string) (code int, err error) {
	conf, err := b.config(command)
	if err != nil {
		return 1, err
	}
	conf.Sender.Brokers, conf.Sender.Topic, conf.Sender.Transport = conn.Brokers, k.TopicHeartbeat, conn.Transport
	conf.Logger = slog.New(zerolog.NewSlogHandler(p.Log.With().Str("role", "beat").Logger()))
	s, err := sidecar.New(conf)
	if err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	if err := p.Metrics.Register(beatMetrics{s.Stats}); err != nil {
		return 1, fmt.Errorf("beat: %w", err)
	}
	p.Ready.Set("beat", s.Ready)
	p.Group.Allow(b.leaveWait + b.stopTimeout + 10*time.Second)
	p.Group.Add("beat", func(ctx context.Context) error {
		err := s.Run(ctx)
		ended <- err
		return err
	})
	err = p.Run(ctx)
	if len(command) == 0 {
		return 0, err
	}
	// How the child ended is what the caller of a wrapped program wants to know, and no error of ours.
	select {
	case childErr := <-ended:
		if exit := (*sidecar.ExitError)(nil); childErr != nil && !errors.As(childErr, &exit) {
			return sidecar.ExitCode(childErr), childErr
		}
		return sidecar.ExitCode(childErr), nil
	default:
		return 1, err
	}
}
