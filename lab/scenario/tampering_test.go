// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// tampering violates a check directly.
type tampering struct {
	check, how string
	with       func(t *testing.T, s *Stage)
}

// allTamperings has at least one entry per check.
func allTamperings() []tampering {
	return slices.Concat(ofPools, ofAttempts, ofLocks, ofWords, ofTime, ofBackendPools)
}

var ofPools = []tampering{
	{"in sync at rest", "an address of Weir is removed", func(_ *testing.T, s *Stage) { s.overwriteForeign("web", "10.9.0.1") }},
	{"in sync at rest", "Weir added an address that is neither wanted nor recorded", func(_ *testing.T, s *Stage) {
		s.overwriteAsWeir("web", "10.9.0.1", "10.0.0.2", "192.0.2.7")
		s.sleepFor(10 * time.Second)
	}},
	{"in sync at rest", "Weir set an address Down whose node does not drain, without a record", func(_ *testing.T, s *Stage) {
		s.opts.AdminState = true
		s.overwriteAsWeir("web", "10.9.0.1", "10.0.0.2 Down")
		s.sleepFor(10 * time.Second)
	}},
	{"in sync in time", "an address of Weir is removed, and no read follows", func(_ *testing.T, s *Stage) {
		s.opts.DriftPeriod = time.Minute
		s.overwriteForeign("web", "10.9.0.1")
		_ = s.runChecks()
		s.sleepFor(151 * time.Second)
	}},
	{"foreign survives", "a foreign address is taken away", func(_ *testing.T, s *Stage) { s.overwriteForeign("web", "10.0.0.2") }},
	{"nothing unwanted", "the address of a node that hosts nothing stays", func(t *testing.T, s *Stage) {
		s.overwriteAsWeir("web", "10.9.0.1", "10.0.0.2", "10.0.0.4")
		_ = s.runChecks()
		s.sleepFor(91 * time.Second)
	}},
	{"soon in sync", "a node is missing and is not added", func(_ *testing.T, s *Stage) {
		s.overwriteForeign("web", "10.9.0.1")
		_ = s.runChecks()
		s.sleepFor(91 * time.Second)
	}},
	{"nothing rises", "a write for a Service that is gone", writeForTheGone},
	{"nothing rises", "a deleted pool comes back", func(t *testing.T, s *Stage) {
		runStep(t, s, "delete-pool web")
		s.overwriteForeign("web")
	}},
}

var ofAttempts = []tampering{
	{"budget", "a look for drift is tried again although the change was given up", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Terminal, Fault: &armerror.Fault{Code: "X"}, Failed: takeTold("web")})
		s.forgeReport(updater.Report{Outcome: diff.Retriable, Resync: true, WillRetry: true, RetriesUsed: 1})
	}},
	{"budget", "given up too early", func(_ *testing.T, s *Stage) { s.forgeReport(updater.Report{Outcome: diff.Retriable}) }},
	{"budget", "another attempt after the last", func(_ *testing.T, s *Stage) {
		for range 4 {
			s.forgeReport(updater.Report{Outcome: diff.Retriable, WillRetry: true})
		}
	}},
	{"budget", "waiting costs a retry", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Retriable, WillRetry: true, RetriesUsed: 2})
	}},
	{"not before the time", "a parked pool is read", func(t *testing.T, s *Stage) {
		runStep(t, s, "throttle pool=web code=Busy retry-after=60 times=1", "scale web nodes=(n2)", "clock 1s", "expect parked=web")
		if err := s.process.newClient(); err != nil { // with a client that would not refuse it
			t.Error(err)
		}
		if _, err := s.process.GetPool(t.Context(), s.poolByName("web").id); err == nil {
			t.Error("the emulator answers a call before its Retry-After")
		}
	}},
	{"not before the time", "what has failed is tried again at once", func(t *testing.T, s *Stage) {
		runStep(t, s, "conflict pool=web answer=409 times=1", "scale web nodes=(n2)", "clock 1s")
		if _, err := s.process.GetPool(t.Context(), s.poolByName("web").id); err != nil {
			t.Error(err)
		}
	}},
	{"one write at a time", "two pools of one load balancer are written at once", writeTwice},
	{"classes", "a conflict is terminal", func(t *testing.T, s *Stage) {
		runStep(t, s, "conflict pool=web answer=409 times=1", "scale web nodes=(n2)", "clock 1s")
		s.poolByName("web").lastAnswer = response{kind: "PUT", status: 409, fromFault: true}
		s.forgeReport(updater.Report{Outcome: diff.Terminal, Fault: &armerror.Fault{Code: "X"}})
	}},
	{"classes", "a pool that is there is taken for gone", func(_ *testing.T, s *Stage) {
		s.poolByName("web").lastAnswer = response{kind: "PUT", status: 404, fromFault: true}
		s.forgeReport(updater.Report{Outcome: diff.Stale, Fault: &armerror.Fault{Code: "X"}})
	}},
	{"bounded queue", "operations of Services that nobody knows", func(_ *testing.T, s *Stage) {
		for _, name := range strings.Fields("a b c d e f g h i j k") {
			b := s.cluster.bindings["web"]
			s.process.updater.Add(schedule.Operation{Ref: b.ref, Pool: b.pool, Service: schedule.ServiceName{Name: name}})
		}
	}},
}

var ofLocks = []tampering{
	{"alone", "a pool is read while another client has its lane", func(t *testing.T, s *Stage) {
		runStep(t, s, "lock kubernetes for=1m", "clock 1s")
		_, _ = s.process.GetPool(t.Context(), s.poolByName("web").id)
	}},
	{"alone", "a write after the lease has ended", func(t *testing.T, s *Stage) {
		stored, _ := s.process.GetPool(t.Context(), s.poolByName("web").id)
		s.process.lease = newLeaseClient(s.process, time.Minute)
		s.process.lease.workers, s.process.lease.termEnd = 1, time.Now()
		_, _ = s.process.PutPool(t.Context(), stored)
	}},
	{"alone", "a call of one who is not the leader any more", func(t *testing.T, s *Stage) {
		s.process.isStopping = true
		_, _ = s.process.GetPool(t.Context(), s.poolByName("web").id)
	}},
	{"one leads", "a write of one after whom another leads", func(t *testing.T, s *Stage) {
		stored, _ := s.process.GetPool(t.Context(), s.poolByName("web").id)
		s.process.isOldLeader = true
		_, _ = s.process.PutPool(t.Context(), stored)
	}},
	{"one leads", "a record of one after whom another leads", func(t *testing.T, s *Stage) {
		b := s.cluster.bindings["web"]
		s.process.isOldLeader = true
		_ = s.process.Record(t.Context(), b.ref, diff.Intent{Written: s.process.statusEntries[b.ref].written})
	}},
	{"order of locks", "a lane waits with the lease in hand", func(_ *testing.T, s *Stage) {
		s.process.lease = newLeaseClient(s.process, time.Minute)
		s.process.lease.workers = 1
	}},
	{"the lease is shared", "it is not given back", func(_ *testing.T, s *Stage) {
		s.process.lease = newLeaseClient(s.process, time.Minute)
		s.process.lease.exitedAt = time.Now()
		s.lease.holder, s.lease.until = s.process.name, time.Now().Add(time.Hour)
		s.sleepFor(16 * time.Second)
	}},
	{"the lease is shared", "a lane enters long after a turn", func(t *testing.T, s *Stage) {
		s.process.lease = newLeaseClient(s.process, time.Hour)
		_, leave, err := s.process.lease.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		s.process.lease.leaseStart = time.Now().Add(-2 * time.Minute)
		_, again, err := s.process.lease.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again()
	}},
}

var ofWords = []tampering{
	{"words", "a look for drift tells again what a change was given up for", func(_ *testing.T, s *Stage) {
		failed := updater.Report{Outcome: diff.Terminal, Fault: &armerror.Fault{Code: "X"}, Failed: takeTold("web")}
		s.forgeReport(failed)
		failed.Resync = true
		s.forgeReport(failed)
	}},
	{"words", "a stale pool is told of", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Stale, Failed: takeTold("web")})
	}},
	{"words", "one attempt tells the same twice", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Retriable, WillRetry: true, RetriesUsed: 1, Retrying: append(takeTold("web"), takeTold("web")...)})
	}},
	{"words", "an event reports a pool that was in sync before", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Unchanged, InSync: true, Updated: takeTold("web")})
	}},
	{"words", "a Service that is gone is told", func(t *testing.T, s *Stage) {
		runStep(t, s, "delete-service web", "clock 10s")
		s.forgeReport(updater.Report{Outcome: diff.Terminal, Failed: takeTold("web")})
	}},
	{"words", "a dead process speaks", func(t *testing.T, s *Stage) {
		p := s.process
		s.stopProcess("")
		p.Report(t.Context(), updater.Report{Pool: s.poolByName("web").id, Outcome: diff.Shutdown})
	}},
	{"words", "a process that dies before the answer to a write of several pools says how that ended", func(t *testing.T, s *Stage) {
		p, web := s.process, s.poolByName("web")
		s.batchOf(web.id.LoadBalancer).pools, web.attempt = []*pool{web}, &attempt{inBatch: true}
		s.stopProcess("")
		p.Report(t.Context(), updater.Report{Pool: web.id, Outcome: diff.Written, InSync: true})
	}},
	{"observations", "a success and a failure at once", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Written, InSync: true, Updated: takeTold("web"), Failed: takeTold("web")})
	}},
	{"schema", "an admin state that Azure does not know", func(t *testing.T, s *Stage) {
		body := strings.NewReader(`{"properties":{"loadBalancerBackendAddresses":[{"name":"x","properties":{"ipAddress":"10.0.0.2","adminState":"Drained"}}]}}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1:8080"+s.poolByName("web").id.String()+"?api-version=2025-05-01", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer another-client")
		resp, err := s.emulator.Transport().Do(req)
		if err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Error(resp, err)
		}
	}},
	{"no secret", "a log line", func(_ *testing.T, s *Stage) { s.log.Info("calling", "authorization", "Bearer "+testToken) }},
	{"no secret", "a fault", func(_ *testing.T, s *Stage) {
		s.forgeReport(updater.Report{Outcome: diff.Terminal, Fault: &armerror.Fault{Code: "X", Err: errors.New("sent " + testToken)}})
	}},
}

func (s *Stage) poolByName(name string) *pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poolNamed(name)
}

// overwriteForeign replaces the addresses of a pool.
func (s *Stage) overwriteForeign(name string, ips ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.poolNamed(name)
	held, _ := s.azureAddresses(k)
	var remaining []lb.Address
	for _, ip := range ips {
		i := slices.IndexFunc(held, func(a lb.Address) bool { return a.IP.String() == ip })
		if i >= 0 {
			remaining = append(remaining, held[i])
		} else {
			remaining = append(remaining, lb.Address{Name: "x" + ip, IP: poolAddresses([]byte(`{"properties":{"loadBalancerBackendAddresses":[{"properties":{"ipAddress":"` + ip + `"}}]}}`))[0]})
		}
	}
	if err := s.overwritePool(k, remaining); err != nil {
		panic(err)
	}
}

// overwriteAsWeir replaces the addresses of a pool as Weir.
func (s *Stage) overwriteAsWeir(name string, entries ...string) {
	s.mu.Lock()
	k := s.poolNamed(name)
	s.mu.Unlock()
	var list []string
	for i, text := range entries {
		ip, down, _ := strings.Cut(text, " ")
		list = append(list, fmt.Sprintf(`{"name":"x%d","properties":{"ipAddress":%q,"adminState":%q}}`, i, ip, cmp.Or(down, lb.None)))
	}
	body := fmt.Sprintf(`{"properties":{"virtualNetwork":{"id":%q},"loadBalancerBackendAddresses":[%s]}}`, networkID, strings.Join(list, ","))
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://127.0.0.1:8080"+k.id.String()+"?api-version=2025-05-01", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	s.setToken(req, s.process.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invalidateSnapshots()
	resp, err := s.emulator.Transport().Do(req)
	if err != nil || resp.StatusCode >= 300 {
		panic(fmt.Sprint("not written: ", resp, err))
	}
	_ = resp.Body.Close()
}

// forgeReport reports an attempt that did not happen.
func (s *Stage) forgeReport(r updater.Report) {
	b := s.cluster.bindings["web"]
	r.Ref, r.Pool, r.Budget = b.ref, b.pool, s.opts.MaxRetries
	s.process.Report(context.Background(), r)
}

func takeTold(name string) []schedule.ServiceName {
	return []schedule.ServiceName{{Namespace: namespace, Name: name}}
}

func writeTwice(t *testing.T, s *Stage) {
	var both sync.WaitGroup
	for _, name := range []string{"web", "api"} {
		both.Go(func() {
			id := s.poolByName(name).id
			stored, err := s.process.client.GetPool(t.Context(), id)
			if err == nil {
				_, _ = s.process.PutPool(t.Context(), stored)
			}
		})
	}
	both.Wait()
}

func writeForTheGone(t *testing.T, s *Stage) {
	runStep(t, s, "delete-service web", "clock 10s", "expect in-sync")
	b := s.cluster.bindings["web"]
	stored, err := s.process.GetPool(t.Context(), b.pool)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.process.DesiredPool(b.ref); err != nil {
		t.Fatal(err)
	}
	n := s.cluster.nodes["n1"]
	stored.Addresses = append(stored.Addresses, lb.Address{Name: n.Name, IP: n.IPs[0]})
	if _, err := s.process.PutPool(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}
