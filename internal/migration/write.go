// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

// write sends all requests even if some fail, and returns one error, a terminal one if there is
// any.
func (m *Migration) write(ctx context.Context, s migrate.Steps) error {
	valid := func() bool { return true }
	if m.cfg.Lease != nil {
		held, leave, err := m.cfg.Lease.Enter(ctx)
		if err != nil {
			return err
		}
		defer leave()
		valid = held
	}
	var writes errgroup.Group
	writes.SetLimit(migrate.AtATime)
	var mu sync.Mutex
	var failed error
	m.refused = map[lb.LoadBalancerKey]error{}
	for _, send := range m.requests(s) {
		writes.Go(func() error {
			if ctx.Err() != nil || !valid() {
				return nil
			}
			err := bounded(ctx, send)
			mu.Lock()
			defer mu.Unlock()
			f := fault.From(err)
			if err != nil && ctx.Err() == nil {
				m.cfg.Log.Warn("migration to Standard load balancers: a request has failed", "phase", s.Phase, "err", err)
			}
			if err != nil && (failed == nil || f.Class == fault.Terminal) {
				failed = err
			}
			m.apart = m.apart || s.Phase != migrate.Static && (err == nil || f.Undecided)
			return nil
		})
	}
	_ = writes.Wait() // none returns an error
	if failed == nil && !valid() {
		return contest.ErrLeaseLost
	}
	return passing(failed)
}

const deadline = 10 * time.Minute

func bounded(ctx context.Context, send func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := send(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return &fault.Fault{Class: fault.Retriable, Code: "DeadlineExceeded", Undecided: true, Err: fmt.Errorf("no answer within %s: %w", deadline, err)}
	}
	return err
}

// passing makes a write conflict retriable: the next snapshot resolves it.
func passing(err error) error {
	if f := fault.From(err); f.Overtaken() {
		return &fault.Fault{Class: fault.Retriable, Code: f.Code, Reason: f.Reason, RetryAt: time.Now().Add(time.Second), Err: err}
	}
	return err
}

// requests may be sent in parallel.
func (m *Migration) requests(s migrate.Steps) (all []func(context.Context) error) {
	for _, ip := range s.PublicIPs {
		all = append(all, func(ctx context.Context) error {
			_, err := m.cfg.Azure.PutPublicIP(ctx, ip)
			return named("public IP "+ip.ID.Name, err)
		})
	}
	for _, i := range s.Interfaces {
		all = append(all, func(ctx context.Context) error {
			_, err := m.cfg.Azure.PutInterface(ctx, i)
			return named("network interface "+i.ID.Name, err)
		})
	}
	for _, set := range s.ScaleSets {
		all = append(all, func(ctx context.Context) error { return named("scale set "+set.ID.Name, m.writeSet(ctx, set)) })
	}
	for _, b := range s.Delete {
		all = append(all, func(ctx context.Context) error {
			return named(called(b.ID), m.cfg.Azure.DeleteLoadBalancer(ctx, b))
		})
	}
	for _, b := range s.Put {
		all = append(all, func(ctx context.Context) error {
			_, err := m.cfg.Azure.PutLoadBalancer(ctx, b)
			m.mu.Lock()
			m.refused[b.ID.Key()] = err
			m.mu.Unlock()
			return named(called(b.ID), err)
		})
	}
	return all
}

func called(id lb.LoadBalancerID) string { return "load balancer " + id.Name }

func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// writeSet is sequential: Azure accepts one write per scale set at a time.
func (m *Migration) writeSet(ctx context.Context, s migrate.SetSteps) error {
	if s.Model != nil {
		return m.writeModel(ctx, *s.Model)
	}
	if err := m.cfg.Azure.Upgrade(ctx, s.ID, s.Upgrade); err != nil {
		return err
	}
	var failed []error
	for _, i := range s.Write {
		fresh, err := m.cfg.Azure.GetInstance(ctx, s.ID, i.ID) // a list has no etags
		if f := fault.From(err); f != nil && f.Class == fault.Stale {
			continue
		}
		if err == nil {
			fresh.Interfaces = i.Interfaces
			_, err = m.cfg.Azure.PutInstance(ctx, fresh)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (m *Migration) writeModel(ctx context.Context, model lb.ScaleSet) error {
	if !model.Uniform {
		_, err := m.cfg.Azure.PatchModel(ctx, model)
		return err
	}
	instances, err := m.cfg.Azure.ListInstances(ctx, model.ID)
	if err != nil {
		return err
	}
	level := map[string]bool{}
	for _, i := range instances {
		level[i.ID] = i.LatestModel
	}
	m.mu.Lock()
	m.level[model.ID.Key()], m.waited[model.ID.Key()] = level, time.Now()
	m.mu.Unlock()
	_, err = m.cfg.Azure.PatchModel(ctx, model)
	return err
}
