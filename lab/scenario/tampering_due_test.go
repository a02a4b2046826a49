// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

var ofTime = []tampering{
	{"not before the time", "Retry-After is forgotten with a pause", func(t *testing.T, s *Stage) {
		runStep(t, s, "throttle pool=web code=Busy retry-after=60 times=1", "scale web nodes=(n2)", "clock 1s", "pause web", "pause web end")
		if err := s.process.newClient(); err != nil {
			t.Error(err)
		}
		_, _ = s.process.client.GetPool(t.Context(), s.poolByName("web").id)
	}},
	{"not before the time", "the emulator alone remembers what it asked for", func(t *testing.T, s *Stage) {
		runStep(t, s, "throttle pool=web code=Busy retry-after=60 times=1", "scale web nodes=(n2)", "clock 2s")
		s.poolByName("web").parkedUntil, s.poolByName("web").rejectedUntil = time.Time{}, time.Time{}
		if err := s.process.newClient(); err != nil {
			t.Error(err)
		}
		_, _ = s.process.client.GetPool(t.Context(), s.poolByName("web").id)
	}},
	{"not before the time", "an attempt begins while a gate is closed", func(_ *testing.T, s *Stage) {
		s.closeGate("reads of s1", time.Now().Add(time.Minute), true)
		s.sleepFor(time.Second)
		s.process.setPhase(s.poolByName("web").id, "get")
	}},
	{"not before the time", "two attempts begin at once when a gate has opened", func(_ *testing.T, s *Stage) {
		s.closeGate("writes of s1", time.Now().Add(time.Second), true)
		s.sleepFor(time.Second)
		s.process.setPhase(s.poolByName("web").id, "get")
		s.process.setPhase(s.poolByName("api").id, "get")
	}},
	{"in time", "a change is due, and nobody attempts it", func(_ *testing.T, s *Stage) {
		s.poolByName("web").queuedAt = time.Now()
		s.sleepFor(41 * time.Second)
	}},
	{"not before the time", "a pool's changes are attempted at once though the share is spent", func(_ *testing.T, s *Stage) {
		s.sleepFor(time.Hour)
		s.opts.SharePercent = 1
		for range 20 {
			s.process.countWrite(call{kind: "PUT", pool: s.poolByName("web").id})
		}
		for range 2 {
			s.poolByName("web").operations++
			s.process.setPhase(s.poolByName("web").id, "get")
			s.forgeReport(updater.Report{Outcome: diff.Unchanged, InSync: true, ChangedAt: time.Now()})
			s.sleepFor(2 * time.Second)
		}
	}},
	{"in time", "a change is kept to a pace though plenty is left", func(_ *testing.T, s *Stage) {
		s.process.setPhase(s.poolByName("web").id, "get")
		s.forgeReport(updater.Report{Outcome: diff.Unchanged, InSync: true})
		s.poolByName("web").queuedAt = time.Now()
		s.sleepFor(21 * time.Second)
	}},
	{"in time", "a look was postponed, and nobody comes back to it", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Postponed, Resync: true, WillRetry: true})
		s.sleepFor(41 * time.Second)
	}},
	{"in time", "a wait that nobody has asked for is longer than an interval", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Postponed, WillRetry: true, At: time.Now(), RetryAt: time.Now().Add(time.Minute)})
	}},
	{"in time", "an attempt has no end", func(_ *testing.T, s *Stage) {
		s.process.setPhase(s.poolByName("web").id, "get")
		s.sleepFor(12 * time.Minute)
	}},
	{"fair", "what became due later is taken first", func(_ *testing.T, s *Stage) {
		web, api := s.poolByName("web"), s.poolByName("api")
		api.queuedAt = time.Now()
		s.sleepFor(2 * time.Minute)
		web.queueChange()
		web.endedAt = time.Now()
		s.process.setPhase(web.id, "get")
	}},
	{"fair", "what became due later is taken first, with others", func(_ *testing.T, s *Stage) {
		web, api := s.poolByName("web"), s.poolByName("api")
		api.queuedAt = time.Now()
		s.sleepFor(2 * time.Minute)
		web.queueChange()
		web.endedAt = time.Now()
		s.beginBatch(&batch{queried: []*pool{web}})
	}},
	{"fair", "a look goes before a change", func(_ *testing.T, s *Stage) {
		s.poolByName("api").queuedAt = time.Now()
		s.sleepFor(time.Minute)
		s.poolByName("web").endedAt = time.Now()
		s.process.setPhase(s.poolByName("web").id, "get")
		s.forgeReport(updater.Report{Outcome: diff.Unchanged, InSync: true, Resync: true})
	}},
	{"classes", "a closed gate ends the wait for a write", func(_ *testing.T, s *Stage) {
		s.poolByName("web").lastAnswer = response{kind: "poll", status: 200}
		s.forgeReport(updater.Report{Outcome: diff.Retriable, Fault: &armerror.Fault{Code: armerror.CodeGateClosed}, WillRetry: true, RetriesUsed: 1})
	}},
}

var ofBackendPools = []tampering{
	{"hands off", "a pool is read whose BackendPool is paused", func(t *testing.T, s *Stage) {
		runStep(t, s, "pause web")
		_, _ = s.process.GetPool(t.Context(), s.poolByName("web").id)
	}},
	{"hands off", "a pool is read whose BackendPool has gone", func(t *testing.T, s *Stage) {
		runStep(t, s, "delete-backendpool web", "clock 10s")
		_, _ = s.process.GetPool(t.Context(), s.poolByName("web").id)
	}},
	{"hands off", "a BackendPool goes and leaves an address behind", func(_ *testing.T, s *Stage) {
		s.process.releasePool(s.cluster.bindings["web"])
	}},
	{"nothing rises", "an address of ours comes back to a pool that was let go", func(t *testing.T, s *Stage) {
		runStep(t, s, "delete-backendpool web", "clock 10s", "expect pool=web holds=(f-10-9-0-1)")
		s.overwriteForeign("web", "10.9.0.1", "10.0.0.2")
	}},
}
