// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/azure"
)

// replica runs Weir processes in sequence: when one exits, the next starts, as under a kubelet.
type replica struct {
	stage   *Stage
	name    string
	process atomic.Pointer[process] // the running process, or the last one
	lives   atomic.Int32
	// off is closed by stop; ended when nothing runs anymore.
	off, ended chan struct{}
}

// process is one run of Weir with its in-memory state.
type process struct {
	stage  *Stage
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // result of Run; valid after it ended
	// dead is set when the process is killed; later actions have no effect.
	dead    atomic.Bool
	metrics *prometheus.Registry
	// renewed is the send time of the last successful lease renewal, since the start of the stage.
	renewed atomic.Int64
}

// Tokens that must appear on the wire only.
const (
	azureToken = "canary-YXp1cmUtdG9rZW4"
	apiToken   = "canary-YXBpLXRva2Vu"
)

type credential struct{}

func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: azureToken, ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// startsAgainAfter is the restart delay.
const startsAgainAfter = 10 * time.Second

func (r *replica) start() {
	r.off, r.ended = make(chan struct{}), make(chan struct{})
	r.launch()
	go r.keep()
}

// keep restarts the process whenever it exits.
func (r *replica) keep() {
	defer close(r.ended)
	for {
		p := r.process.Load()
		select {
		case <-p.ended:
		case <-r.off:
			<-p.ended
			return
		}
		if p.err == nil && !p.dead.Load() && !r.stage.log.says("process="+p.name, "the lead is given up") {
			r.stage.breaks("%s ended, and nobody had told it to", p.name)
		}
		r.stage.log.note("%s ended: %v", p.name, p.err)
		select {
		case <-time.After(startsAgainAfter):
		case <-r.off:
			return
		}
		r.launch()
	}
}

// launch starts a process with empty memory.
func (r *replica) launch() {
	s := r.stage
	s.emu.ResetRetryAfter() // the new process does not know earlier answers
	p := &process{stage: s, name: fmt.Sprintf("%s.%d", r.name, r.lives.Add(1)), ended: make(chan struct{}), metrics: prometheus.NewRegistry()}
	p.renewed.Store(never)
	r.process.Store(p)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		panic(err) // constant input
	}
	api := s.api.RESTConfig(r.name)
	api.Transport = &apiWire{p, api.Transport}
	api.BearerToken = apiToken
	go func() {
		defer close(p.ended)
		defer cancel()
		p.err = app.RunWith(ctx, s.flags(s.log.logger(p.name)), app.Dependencies{
			Config: s.cfg, API: api, Metrics: p.metrics,
			Azure: azure.Options{Endpoint: endpoint, Credential: credential{}, Transport: &azureWire{p, s.emu.Transport()}},
		})
	}()
}

// Kill ends a process at once: its requests arrive, but it gets no response. A new process starts
// later.
func (s *Stage) Kill(replica int) {
	s.replicas[replica%len(s.replicas)].process.Load().dies()
	s.emu.ResetRetryAfter() // the new leader does not know earlier answers
	s.opts.Settle()
}

func (p *process) dies() {
	p.dead.Store(true)
	p.cancel()
	p.stage.log.note("%s is killed", p.name)
}

// stop shuts the process down gracefully and does not restart it.
func (r *replica) stop() {
	if r.off == nil {
		return
	}
	close(r.off)
	r.process.Load().cancel()
	<-r.ended
	r.off = nil
}
