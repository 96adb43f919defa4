package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

type topologyInput struct {
	Version int64  `query:"version" minimum:"1" doc:"Which version; absent: the newest."`
	Prefix  string `query:"prefix" maxLength:"400" doc:"Only records whose key begins so, such as route/ or service/orders."`
	PageInput
}

func (a *api) getTopology(ctx context.Context, in *topologyInput) (*output[wire.Topology], error) {
	number, after, err := in.place()
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	version, err := a.store.GetVersion(ctx, number)
	if err != nil {
		return nil, a.noVersion(ctx, number, err)
	}
	records, err := a.store.VersionRecords(ctx, version.Version, in.Prefix, after, in.Limit+1)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	// Records are trimmed after their version, so one that is still there has been read whole.
	if _, err := a.store.GetVersion(ctx, version.Version); err != nil {
		return nil, a.noVersion(ctx, version.Version, err)
	}
	records, more := cut(records, in.Limit)
	t := wire.Topology{TopologyVersion: topologyVersion(version), Content: make([]wire.TopologyRecord, len(records))}
	for i, r := range records {
		t.Content[i] = wire.TopologyRecord{Key: r.Key, Value: rawJSON(r.Value)}
	}
	if more {
		t.NextCursor = encodeCursor(cursorTopology, strconv.FormatInt(version.Version, 10), records[len(records)-1].Key)
	}
	return &output[wire.Topology]{t}, nil
}

// place is the version to read and the key to read on after. A cursor fixes the version, so that pages don't mix two.
func (in *topologyInput) place() (version int64, after string, err error) {
	if in.Cursor == "" {
		return in.Version, "", nil
	}
	key, err := decodeCursor(cursorTopology, in.Cursor)
	if err != nil {
		return 0, "", badCursor(in.Cursor)
	}
	version, err = strconv.ParseInt(key[0], 10, 64)
	if err != nil || version < 1 {
		return 0, "", badCursor(in.Cursor)
	}
	if in.Version != 0 && in.Version != version {
		return 0, "", badRequest([]wire.FieldError{{
			Location: "query.version", Message: "is another version than the cursor's", Value: strconv.FormatInt(in.Version, 10),
			Allowed: fmt.Sprintf("%d, or no version beside a cursor", version),
		}})
	}
	return version, key[1], nil
}

func (a *api) noVersion(ctx context.Context, number int64, err error) *problem {
	if !isNotFound(err) {
		return a.unreadable(ctx, err)
	}
	if number == 0 {
		return notFound("path", "", "no topology has been published yet")
	}
	return notFound("query.version", strconv.FormatInt(number, 10),
		"topology version %d is not kept, or never was; GET /v1/topology/versions lists those that are", number)
}

// rawJSON is a value as it stands when it is JSON, else as a JSON string.
func rawJSON(value []byte) json.RawMessage {
	if json.Valid(value) {
		return value
	}
	text, _ := json.Marshal(printable(value)) // a string always encodes
	return text
}

func topologyVersion(v registry.Version) wire.TopologyVersion {
	return wire.TopologyVersion{
		Version: v.Version, Epoch: v.Epoch, Digest: v.Digest, Records: v.Records, Changed: v.Changed, Cause: v.Cause,
		Revision: v.Revision, CreatedAt: wire.Time(v.CreatedAt),
	}
}

type versionsInput struct{ PageInput }

func (a *api) listVersions(ctx context.Context, in *versionsInput) (*output[wire.TopologyVersionList], error) {
	var before int64
	if in.Cursor != "" {
		key, err := decodeNumbers(cursorVersions, in.Cursor)
		if err != nil {
			return nil, badCursor(in.Cursor)
		}
		before = key[0]
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	versions, err := a.store.ListVersions(ctx, before, in.Limit+1)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	versions, more := cut(versions, in.Limit)
	list := wire.TopologyVersionList{Versions: make([]wire.TopologyVersion, len(versions))}
	for i, v := range versions {
		list.Versions[i] = topologyVersion(v)
	}
	if more {
		list.NextCursor = encodeNumbers(cursorVersions, versions[len(versions)-1].Version)
	}
	return &output[wire.TopologyVersionList]{list}, nil
}
