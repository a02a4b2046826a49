// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
)

// process is one run of Weir with its in-memory state.
type process struct {
	stage     *stage
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup
	balancers *loadbalancer.LoadBalancers
	lanes     *updater.Workers
	// had are released BackendPools, with known members.
	had    map[string]bool
	client *azure.Client
	// dead, missing and claims are guarded by the stage's mu.
	dead bool
	// missing counts pools that did not exist and are retried.
	missing int
	claims  map[string]*claim
}

// launch starts a process without requests.
func (s *stage) launch() {
	endpoint, credential, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		panic(err)
	}
	p := &process{stage: s, claims: map[string]*claim{}, had: map[string]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.client, err = azure.New(azure.Options{
		Endpoint: endpoint, Credential: credential, Transport: &wire{p},
		VirtualNetworkID: vnetID, Retry: azure.Retry{Delay: time.Second},
	})
	if err != nil {
		panic(err)
	}
	ofPools := updater.Config{Interval: 30 * time.Second, Azure: p.client, Cluster: noPools{}, Behaviour: s.knows, Log: quiet}
	if s.backends != nil {
		kept := pools{p}
		ofPools.Cluster, ofPools.StatusStore, ofPools.Reporter = kept, kept, kept
		ofPools.MaxRetries, ofPools.ResyncPeriod, ofPools.AdminState = 3, 10*time.Minute, true
	}
	p.lanes = updater.New(ofPools)
	config := loadbalancer.Config{
		Owners: s.owners, PrivateIPs: s.reservations, LeftPools: s.left, PublicIPGroups: s.groups,
		Settings: s.settings, Azure: p.client, Workers: p.lanes, Cluster: p, Zones: s.zones, OnResult: p.ensured, Log: s.log,
		OnPortsReleased: func(services []string) {
			p.running.Go(func() {
				for _, name := range services {
					p.kick(name)
				}
			})
		},
	}
	if s.links() {
		config.PrivateLinks = azure.NewPrivateLinkClient(p.client)
	}
	if s.wrap != nil {
		config.Azure = s.wrap(p.client)
	}
	if s.lease != nil {
		config.Lease = s.lease
	}
	p.balancers = loadbalancer.New(config)
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	p.running.Go(func() { p.balancers.Run(p.ctx) })
	p.running.Go(func() { p.lanes.Run(p.ctx) })
}

// die kills the process: later actions have no effect. The caller holds s.mu.
func (p *process) die() {
	p.dead = true
	p.cancel()
}

// noPools is a cluster without BackendPools.
type noPools struct{}

func (noPools) IsNeeded(schedule.Operation) bool                     { return false }
func (noPools) DesiredPool(schedule.Ref) (d diff.Desired, err error) { return d, nil }

// wire is the transport of a process, which can be killed during a call.
type wire struct{ process *process }

// Do implements azure.Transport.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	p, s := w.process, w.process.stage
	if ratelimit.Sleep(req.Context(), distance(req.URL.Path)) != nil {
		return nil, req.Context().Err()
	}
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return nil, context.Canceled
	}
	s.sent++
	dies := s.kill.nth == s.sent
	if dies && !s.kill.after {
		p.die()
		s.mu.Unlock()
		return nil, context.Canceled
	}
	s.mu.Unlock()
	// A new process does not know the requests of a killed one.
	req.Header.Set("Authorization", fmt.Sprintf("Bearer of %p", p))
	resp, err := s.emu.Transport().Do(req)
	if dies {
		s.mu.Lock()
		p.die()
		s.mu.Unlock()
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, context.Canceled
	}
	return resp, err
}

// lease is the resource lease.
type lease struct {
	mu   sync.Mutex
	held bool // by another holder
	lost bool // writes are no longer allowed
}

func (l *lease) Enter(context.Context) (func() bool, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil, nil, errors.New(`the lease kube-system/aks-managed-resource-locker is held by "other"`)
	}
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.lost
	}, func() {}, nil
}

func (l *lease) set(state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.lost = state == "held", state == "lost"
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text
}
