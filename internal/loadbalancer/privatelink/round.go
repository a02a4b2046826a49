// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
)

const (
	// maxConcurrent: a write takes about 10 s, and ARM accepts about ten writes per second.
	maxConcurrent = 32
	// roundTimeout leaves the rest to the next round.
	roundTimeout = 4 * time.Minute
	// maxRemoved limits removals per frontend and round, so that other Services don't wait for
	// hundreds. Two take about as long as creating a Private Link Service.
	maxRemoved = 2
)

type round struct {
	*Config
	// groups were read; readErrors are keyed by lower-case name.
	groups     []string
	readErrors map[string]error
	links      []lb.PrivateLinkService
	subnets    *subnetCache
}

// Reconcile reconciles the frontends of a load balancer in parallel and stores the outcomes in the
// requests.
func (rec *Reconciler) Reconcile(ctx context.Context, b LoadBalancer, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	on := rec.cfg.Cluster.FrontendServices(ruleOwners(b.Observed))
	r, requests := rec.startRound(ctx, requests, servicesToRead(on, frontendOwners(b.Observed, requests), requests))
	frontends := findFrontends(b, requests, r.links, r.Settings)
	limits := r.newNamespaceLimits(b.Observed.ID, on)
	services := r.Cluster.FrontendServices(allOwners(frontends))
	created := 0
	var works []*frontendWork
	for _, f := range frontends {
		f.LoadBalancer.LinkCount, f.LoadBalancer.CheckLimit = countOthers(b.Observed.ID, f.Frontend, r.links)+created, limits.checkLimit
		var of []desired.FrontendService
		for _, owner := range f.owners {
			if s, ok := services[owner]; ok {
				s.Frozen = s.Frozen || r.readError(serviceGroups(s)) != nil
				of = append(of, s)
			}
		}
		w := &frontendWork{round: r, frontend: f, services: of, links: r.links}
		w.decide()
		if w.decision.Desired != nil && len(desired.ManagedLinks(f.Frontend, r.links, r.Settings)) == 0 {
			created++
			limits.counts[desired.Namespace(w.decision.Owner)]++
			w.LoadBalancer.CheckLimit = nil // a retry must not count it again
		}
		works = append(works, w)
	}
	reconcileAll(ctx, works)
	for _, req := range requests {
		if req.requestsLink() && req.State == nil && req.Err == nil {
			req.State = &State{Reason: ReasonWaiting, Text: "its frontend is not there yet"}
		}
	}
}

// RemovePublishers unpublishes frontends before their deletion. A request gets an error if one remains
// published.
func (rec *Reconciler) RemovePublishers(ctx context.Context, frontends map[string][]*Request, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	r, _ := rec.startRound(ctx, requests, nil)
	var works []*frontendWork
	for id, by := range frontends {
		if at := slices.IndexFunc(by, func(req *Request) bool { return req.Err != nil }); at >= 0 { // its other publishers are unknown
			for _, req := range by {
				req.setError(by[at].Err)
			}
			continue
		}
		f := frontend{Frontend: desired.Frontend{ID: id, Name: resourceName(id)}, requests: by}
		works = append(works, &frontendWork{round: r, frontend: f, links: r.links, removeAll: true})
	}
	reconcileAll(ctx, works)
}

// FindPublished returns the published ones of the given frontend ids.
func (s *Snapshot) FindPublished(ctx context.Context, req *Request, frontends []string) ([]string, error) {
	var links []lb.PrivateLinkService
	for _, group := range s.reconciler.cfg.resourceGroups([]*Request{req}, nil) {
		listed, err := s.listGroup(ctx, group)
		if err != nil {
			return nil, err
		}
		links = append(links, listed...)
	}
	return slices.DeleteFunc(slices.Clone(frontends), func(id string) bool {
		return desired.DescribePublishers(desired.Frontend{ID: id, Name: resourceName(id)}, links) == ""
	}), nil
}

// startRound reads each resource group once and returns the requests with readable groups.
func (rec *Reconciler) startRound(ctx context.Context, requests []*Request, services map[string]desired.FrontendService) (r *round, readable []*Request) {
	r = &round{Config: &rec.cfg, subnets: newSubnetCache(rec.cfg.Azure), readErrors: map[string]error{}}
	for _, group := range rec.cfg.resourceGroups(requests, services) {
		links, err := r.listLinks(ctx, []string{group})
		if err != nil {
			r.readErrors[strings.ToLower(group)] = err
			continue
		}
		r.groups, r.links = append(r.groups, group), append(r.links, links...)
	}
	for _, req := range requests {
		req.Err, req.State, req.HasMore = nil, nil, false
		if err := r.readError(rec.cfg.resourceGroups([]*Request{req}, nil)); err != nil {
			req.setError(err)
			continue
		}
		readable = append(readable, req)
	}
	return r, readable
}

func (r *round) readError(groups []string) error {
	for _, group := range groups {
		if err := r.readErrors[strings.ToLower(group)]; err != nil {
			return err
		}
	}
	return nil
}

func reconcileAll(ctx context.Context, works []*frontendWork) {
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for _, w := range works {
		group.Go(func() error {
			w.reconcile(ctx)
			return nil
		})
	}
	_ = group.Wait() // errors are stored per frontend
	for _, w := range works {
		w.storeResult()
	}
}

// reconcile holds the lease, and retries once after a write conflict.
func (w *frontendWork) reconcile(ctx context.Context) {
	retry := false
	w.err = conflict.RunWrite(ctx, w.Lease, "private link service of frontend "+w.Name, w.OnConflict, func(ctx context.Context, valid func() bool) error {
		if retry {
			links, err := w.listLinks(ctx, w.groups)
			if err != nil {
				return err
			}
			w.links = links
			w.decide()
		}
		retry = true
		return w.runSteps(ctx, valid)
	})
}
