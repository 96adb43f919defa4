package registry

import (
	"context"
	"encoding/json"
	"fmt"
)

// Agents lists our own instances, of any liveness, each with the report that its beats carry and when it beat last.
func (s *Store) Agents(ctx context.Context) ([]Agent, error) {
	q := selectInstance + `, COALESCE(r.report, ''), COALESCE(h.received_at, 0) FROM instance i
		LEFT JOIN hot h ON h.id = i.id LEFT JOIN agent_report r ON r.id = i.id
		WHERE i.service >= ? AND i.service < ? ORDER BY i.service, i.iid`
	rows, err := s.db.QueryContext(ctx, q, AgentPrefix, agentEnd)
	if err != nil {
		return nil, fmt.Errorf("registry: agents: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []Agent
	for rows.Next() {
		var r row
		var text string
		var a Agent
		if err := scanInstance(rows, &r, &text, &a.ReceivedAt); err != nil {
			return nil, fmt.Errorf("registry: agents: %w", err)
		}
		a.Instance = r.Instance
		if text != "" {
			a.Report = json.RawMessage(text)
		}
		list = append(list, a)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("registry: agents: %w", err)
	}
	return list, nil
}
