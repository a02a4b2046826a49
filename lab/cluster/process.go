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

// replica is a place where Weir runs: when a process ends by itself another one starts, as a
// kubelet has it.
type replica struct {
	stage   *Stage
	name    string
	process atomic.Pointer[process] // that runs, or did last
	lives   atomic.Int32
	// off is closed by stop; ended when nothing runs any more.
	off, ended chan struct{}
}

// process is one life of Weir, with all that it remembers.
type process struct {
	stage  *Stage
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Run; to be read once it has ended
	// dead is set when the process is killed: what it does from then on reaches nobody.
	dead    atomic.Bool
	metrics *prometheus.Registry
	// renewed is when the renewal of its lead was sent that succeeded last, since the stage began.
	renewed atomic.Int64
}

// Tokens that have to be seen on the wire alone.
const (
	azureToken = "canary-YXp1cmUtdG9rZW4"
	apiToken   = "canary-YXBpLXRva2Vu"
)

type credential struct{}

// GetToken implements azcore.TokenCredential.
func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: azureToken, ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// startsAgainAfter is how long after its end a process is started again.
const startsAgainAfter = 10 * time.Second

func (r *replica) start() {
	r.off, r.ended = make(chan struct{}), make(chan struct{})
	r.launch()
	go r.keep()
}

// keep starts a process whenever one has ended by itself.
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

// launch starts a process with an empty memory.
func (r *replica) launch() {
	s := r.stage
	s.emu.ForgetRetryAfter() // it cannot know what another one was answered
	p := &process{stage: s, name: fmt.Sprintf("%s.%d", r.name, r.lives.Add(1)), ended: make(chan struct{}), metrics: prometheus.NewRegistry()}
	p.renewed.Store(never)
	r.process.Store(p)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	endpoint, _, err := azure.Emulator("http://127.0.0.1:8080")
	if err != nil {
		panic(err) // a constant
	}
	api := s.api.RESTConfig(r.name)
	api.Transport = &apiWire{p, api.Transport}
	api.BearerToken = apiToken
	go func() {
		defer close(p.ended)
		defer cancel()
		p.err = app.RunIn(ctx, s.flags(s.log.logger(p.name)), app.Surroundings{
			Config: s.cfg, API: api, Metrics: p.metrics,
			Azure: azure.Options{Endpoint: endpoint, Credential: credential{}, Transport: &azureWire{p, s.emu.Transport()}},
		})
	}()
}

// Kill has a process end at once: what it has sent arrives, and no answer reaches it. Another
// one starts a little later.
func (s *Stage) Kill(replica int) {
	s.replicas[replica%len(s.replicas)].process.Load().dies()
	s.emu.ForgetRetryAfter() // who leads now cannot know what it was answered
	s.opts.Settle()
}

func (p *process) dies() {
	p.dead.Store(true)
	p.cancel()
	p.stage.log.note("%s is killed", p.name)
}

// stop has the process end in good order, and none start again.
func (r *replica) stop() {
	if r.off == nil {
		return
	}
	close(r.off)
	r.process.Load().cancel()
	<-r.ended
	r.off = nil
}
