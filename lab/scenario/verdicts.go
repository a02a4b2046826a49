// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"maps"
	"sync"

	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/wholewrite"
)

// verdicts is the ConfigMap with Azure's observed behavior for whole load balancer writes.
type verdicts struct {
	mu    sync.Mutex
	holds map[string]wholewrite.Record
}

// together reports whether processes may write several pools at once.
func (o Options) together() bool { return o.Whole || o.Auto }

// writesWhole configures batched updates.
func (s *Stage) writesWhole(p *process, config *poolupdate.Config) {
	switch config.Pipeline, config.Version = p, "v1"; {
	case s.opts.FindsOut:
		config.PipelineSetting, config.CapabilityStore = wholewrite.Auto, shelf{&s.verdicts, p}
	case s.opts.Pipelined:
		config.PipelineSetting = wholewrite.Always
	default:
		config.Pipeline = nil
	}
	if !s.opts.together() { // a Failed load balancer is written regardless
		config.LoadBalancers, config.BatchSetting = p, wholewrite.Never
		return
	}
	config.LoadBalancers, config.BatchSetting = p, wholewrite.Always
	if s.opts.Auto {
		config.BatchSetting, config.CapabilityStore = wholewrite.Auto, shelf{&s.verdicts, p}
	}
}

// shelf is the ConfigMap as a process sees it; writes of a dead process are dropped.
type shelf struct {
	*verdicts
	process *process
}

func (v shelf) ReadRecords(context.Context) (map[string]wholewrite.Record, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.holds), nil
}

func (v shelf) WriteRecord(ctx context.Context, subscription string, r wholewrite.Record) error {
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
	if v.holds == nil {
		v.holds = map[string]wholewrite.Record{}
	}
	v.holds[subscription] = r
	return nil
}
