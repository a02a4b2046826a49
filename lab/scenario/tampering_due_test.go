// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

var ofTime = []tampering{
	{"not before the time", "Retry-After is forgotten with a pause", func(t *testing.T, s *Stage) {
		do(t, s, "throttle pool=web code=Busy retry-after=60 times=1", "scale web nodes=(n2)", "clock 1s", "pause web", "pause web end")
		if err := s.process.connect(); err != nil {
			t.Error(err)
		}
		_, _ = s.process.client.GetPool(t.Context(), s.pool("web").id)
	}},
	{"not before the time", "the emulator alone remembers what it asked for", func(t *testing.T, s *Stage) {
		do(t, s, "throttle pool=web code=Busy retry-after=60 times=1", "scale web nodes=(n2)", "clock 2s")
		s.pool("web").parkedUntil, s.pool("web").patience = time.Time{}, time.Time{}
		if err := s.process.connect(); err != nil {
			t.Error(err)
		}
		_, _ = s.process.client.GetPool(t.Context(), s.pool("web").id)
	}},
	{"not before the time", "an attempt begins while a gate is closed", func(_ *testing.T, s *Stage) {
		s.close("reads of s1", time.Now().Add(time.Minute), true)
		s.sleep(time.Second)
		s.process.phase(s.pool("web").id, "get")
	}},
	{"not before the time", "two attempts begin at once when a gate has opened", func(_ *testing.T, s *Stage) {
		s.close("writes of s1", time.Now().Add(time.Second), true)
		s.sleep(time.Second)
		s.process.phase(s.pool("web").id, "get")
		s.process.phase(s.pool("api").id, "get")
	}},
	{"in time", "a change is due, and nobody attempts it", func(_ *testing.T, s *Stage) {
		s.pool("web").waits = time.Now()
		s.sleep(41 * time.Second)
	}},
	{"not before the time", "a pool's changes are attempted at once though the share is spent", func(_ *testing.T, s *Stage) {
		s.sleep(time.Hour)
		s.opts.SharePercent = 1
		for range 20 {
			s.process.spends(call{kind: "PUT", pool: s.pool("web").id})
		}
		for range 2 {
			s.pool("web").added++
			s.process.phase(s.pool("web").id, "get")
			s.forge(poolupdate.Report{Outcome: poolwrite.Unchanged, InSync: true, ChangedAt: time.Now()})
			s.sleep(2 * time.Second)
		}
	}},
	{"in time", "a change is kept to a pace though plenty is left", func(_ *testing.T, s *Stage) {
		s.process.phase(s.pool("web").id, "get")
		s.forge(poolupdate.Report{Outcome: poolwrite.Unchanged, InSync: true})
		s.pool("web").waits = time.Now()
		s.sleep(21 * time.Second)
	}},
	{"in time", "a look was postponed, and nobody comes back to it", func(_ *testing.T, s *Stage) {
		s.forge(poolupdate.Report{Outcome: poolwrite.Postponed, Resync: true, WillRetry: true})
		s.sleep(41 * time.Second)
	}},
	{"in time", "a wait that nobody has asked for is longer than an interval", func(_ *testing.T, s *Stage) {
		s.forge(poolupdate.Report{Outcome: poolwrite.Postponed, WillRetry: true, At: time.Now(), RetryAt: time.Now().Add(time.Minute)})
	}},
	{"in time", "an attempt has no end", func(_ *testing.T, s *Stage) {
		s.process.phase(s.pool("web").id, "get")
		s.sleep(12 * time.Minute)
	}},
	{"fair", "what became due later is taken first", func(_ *testing.T, s *Stage) {
		web, api := s.pool("web"), s.pool("api")
		api.waits = time.Now()
		s.sleep(2 * time.Minute)
		web.queues()
		web.ended = time.Now()
		s.process.phase(web.id, "get")
	}},
	{"fair", "what became due later is taken first, with others", func(_ *testing.T, s *Stage) {
		web, api := s.pool("web"), s.pool("api")
		api.waits = time.Now()
		s.sleep(2 * time.Minute)
		web.queues()
		web.ended = time.Now()
		s.beginTogether(&joint{asked: []*pool{web}})
	}},
	{"fair", "a look goes before a change", func(_ *testing.T, s *Stage) {
		s.pool("api").waits = time.Now()
		s.sleep(time.Minute)
		s.pool("web").ended = time.Now()
		s.process.phase(s.pool("web").id, "get")
		s.forge(poolupdate.Report{Outcome: poolwrite.Unchanged, InSync: true, Resync: true})
	}},
	{"classes", "a closed gate ends the wait for a write", func(_ *testing.T, s *Stage) {
		s.pool("web").last = answer{kind: "poll", status: 200}
		s.forge(poolupdate.Report{Outcome: poolwrite.Retriable, Fault: &fault.Fault{Code: fault.CodeGateClosed}, WillRetry: true, RetriesUsed: 1})
	}},
}

var ofBackendPools = []tampering{
	{"hands off", "a pool is read whose BackendPool is paused", func(t *testing.T, s *Stage) {
		do(t, s, "pause web")
		_, _ = s.process.GetPool(t.Context(), s.pool("web").id)
	}},
	{"hands off", "a pool is read whose BackendPool has gone", func(t *testing.T, s *Stage) {
		do(t, s, "delete-backendpool web", "clock 10s")
		_, _ = s.process.GetPool(t.Context(), s.pool("web").id)
	}},
	{"hands off", "a BackendPool goes and leaves an address behind", func(_ *testing.T, s *Stage) {
		s.process.letGo(s.cluster.bindings["web"])
	}},
	{"nothing rises", "an address of ours comes back to a pool that was let go", func(t *testing.T, s *Stage) {
		do(t, s, "delete-backendpool web", "clock 10s", "expect pool=web holds=(f-10-9-0-1)")
		s.overwrite("web", "10.9.0.1", "10.0.0.2")
	}},
}
