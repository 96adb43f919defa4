package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// fileMagic begins the first line of a state file; the hex SHA-256 of all that follows the line ends it.
const fileMagic = "upstrand-topology-1 "

// stored is the content of a state file.
type stored struct {
	Version int64           `json:"version"`
	Epoch   int64           `json:"epoch"`
	Digest  topology.Digest `json:"digest"` // of the topic's records, which may be split otherwise than these
	At      time.Time       `json:"at"`
	Records []storedRecord  `json:"records"`
}

type storedRecord struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

var errChecksum = errors.New("the checksum does not fit the content")

// writeFile replaces path by t, so that after a crash either the old or the new one is there, whole.
func writeFile(path string, t *topology.Topology) error {
	records, err := topology.Encode(t.Config)
	if err != nil {
		return err
	}
	s := stored{Version: t.Version, Epoch: t.Epoch, Digest: t.Digest, At: t.At, Records: make([]storedRecord, len(records))}
	for i, r := range records {
		s.Records[i] = storedRecord{r.Key, r.Value}
	}
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	return replaceFile(path, []byte(fileMagic+hex.EncodeToString(sum[:])+"\n"), body)
}

// newSuffix ends the name of the file that becomes the state file once it is whole. It is always the same one, so that
// processes that were killed leave one at most; each proxy has a state file of its own.
const newSuffix = ".new"

func replaceFile(path string, parts ...[]byte) (err error) {
	tmp, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	for _, p := range parts {
		if _, err = tmp.Write(p); err != nil {
			return err
		}
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// readFile reads what writeFile wrote; fs.ErrNotExist when there is none.
func readFile(path string) (*topology.Topology, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	head, body, ok := bytes.Cut(raw, []byte("\n"))
	sum, isOurs := bytes.CutPrefix(head, []byte(fileMagic))
	if !ok || !isOurs {
		return nil, errors.New("not a state file of this program")
	}
	if want := sha256.Sum256(body); hex.EncodeToString(want[:]) != string(sum) {
		return nil, errChecksum
	}
	var s stored
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, err
	}
	records := make([]topology.Record, len(s.Records))
	for i, r := range s.Records {
		records[i] = topology.Record{Key: r.Key, Value: r.Value}
	}
	config, err := topology.DecodeRecords(records)
	if err != nil {
		return nil, err
	}
	return &topology.Topology{Version: s.Version, Epoch: s.Epoch, Digest: s.Digest, At: s.At, Config: config}, nil
}

// startFromFile serves the last good topology when the topic has given none within TopicWait.
func (a *Agent) startFromFile(ctx context.Context) {
	if a.config.StateFile == "" {
		return
	}
	t, err := readFile(a.config.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		a.log.Error().Err(err).Str("file", a.config.StateFile).
			Msg("the last good topology on disk can't be used: nothing is served before the topic answers")
		return
	}
	sleep(ctx, a.config.TopicWait)
	if ctx.Err() != nil || a.Ready() == nil {
		return
	}
	if err := a.apply(t, SourceFile); err != nil {
		a.log.Error().Err(err).Str("file", a.config.StateFile).Msg("the last good topology on disk can't be applied")
		return
	}
	a.log.Warn().Int64("version", t.Version).Int64("epoch", t.Epoch).Int64("age_ms", time.Since(t.At).Milliseconds()).
		Msg("the topic does not answer: serving the last good topology from disk")
}

// toSave says that the topology in force is not on disk yet.
func (a *Agent) toSave() {
	select {
	case a.save <- struct{}{}:
	default:
	}
}

// keepFile writes the topology in force to disk, at most every SaveEvery and once more at the end. What fails is tried
// again.
func (a *Agent) keepFile(ctx context.Context) {
	if a.config.StateFile == "" {
		return
	}
	for {
		select {
		case <-a.save:
			if a.saveNow() != nil {
				a.toSave()
			}
			sleep(ctx, a.config.SaveEvery)
		case <-ctx.Done():
			select {
			case <-a.save:
				_ = a.saveNow() // it is logged, and there is no later
			default:
			}
			return
		}
	}
}

func (a *Agent) saveNow() error {
	a.missed.Store(true) // before the look: Keep looks the other way around
	if a.retired.Load() {
		return nil
	}
	a.missed.Store(false)
	a.mu.Lock()
	t := a.applied
	a.mu.Unlock()
	if err := writeFile(a.config.StateFile, t); err != nil {
		a.metrics.saves.WithLabelValues("failed").Inc()
		a.log.Error().Err(fmt.Errorf("agent: save %s: %w", a.config.StateFile, err)).Msg("the last good topology is not on disk")
		return err
	}
	a.metrics.saves.WithLabelValues("ok").Inc()
	return nil
}
