// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"maps"
	"sync"

	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/wholewrite"
)

// capabilities is the ConfigMap with Azure's observed behavior for whole load balancer writes.
type capabilities struct {
	mu      sync.Mutex
	records map[string]wholewrite.Record
}

// writesTogether reports whether processes may write several pools at once.
func (o Options) writesTogether() bool { return o.Batched || o.AutoBatched }

// configureBatches configures batched updates.
func (s *Stage) configureBatches(p *process, config *poolupdate.Config) {
	switch config.Pipeline, config.Version = p, "v1"; {
	case s.opts.AutoPipelined:
		config.PipelineSetting, config.CapabilityStore = wholewrite.Auto, processStore{&s.capabilities, p}
	case s.opts.Pipelined:
		config.PipelineSetting = wholewrite.Always
	default:
		config.Pipeline = nil
	}
	if !s.opts.writesTogether() { // a Failed load balancer is written regardless
		config.LoadBalancers, config.BatchSetting = p, wholewrite.Never
		return
	}
	config.LoadBalancers, config.BatchSetting = p, wholewrite.Always
	if s.opts.AutoBatched {
		config.BatchSetting, config.CapabilityStore = wholewrite.Auto, processStore{&s.capabilities, p}
	}
}

// processStore is the ConfigMap as a process sees it; writes of a dead process are dropped.
type processStore struct {
	*capabilities
	process *process
}

func (v processStore) ReadRecords(context.Context) (map[string]wholewrite.Record, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.records), nil
}

func (v processStore) WriteRecord(ctx context.Context, subscription string, r wholewrite.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.process.fence != nil {
		if err := v.process.fence.CheckWrite(); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.records == nil {
		v.records = map[string]wholewrite.Record{}
	}
	v.records[subscription] = r
	return nil
}
