// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/skumigration/phase"
)

// writeSteps sends all requests even if some fail, and returns one error, a terminal one if there is
// any.
func (m *Migration) writeSteps(ctx context.Context, s phase.Steps) error {
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
	writes.SetLimit(phase.MaxConcurrent)
	var mu sync.Mutex
	var failed error
	m.putErrors = map[lb.LoadBalancerKey]error{}
	for _, send := range m.buildRequests(s) {
		writes.Go(func() error {
			if ctx.Err() != nil || !valid() {
				return nil
			}
			err := withTimeout(ctx, send)
			mu.Lock()
			defer mu.Unlock()
			f := armerror.FromError(err)
			if err != nil && ctx.Err() == nil {
				m.cfg.Log.Warn("migration to Standard load balancers: a request has failed", "phase", s.Phase, "err", err)
			}
			if err != nil && (failed == nil || f.Class == armerror.Terminal) {
				failed = err
			}
			m.trafficStopped = m.trafficStopped || s.Phase != phase.PhaseStatic && (err == nil || f.MayBeApplied)
			return nil
		})
	}
	_ = writes.Wait() // none returns an error
	if failed == nil && !valid() {
		return conflict.ErrLeaseExpired
	}
	return retryConflict(failed)
}

const requestTimeout = 10 * time.Minute

func withTimeout(ctx context.Context, send func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := send(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return &armerror.Fault{Class: armerror.Retriable, Code: "DeadlineExceeded", MayBeApplied: true, Err: fmt.Errorf("no answer within %s: %w", requestTimeout, err)}
	}
	return err
}

// retryConflict makes a write conflict retriable: the next snapshot resolves it.
func retryConflict(err error) error {
	if f := armerror.FromError(err); f.IsPreconditionFailed() {
		return &armerror.Fault{Class: armerror.Retriable, Code: f.Code, Reason: f.Reason, RetryAt: time.Now().Add(time.Second), Err: err}
	}
	return err
}

// buildRequests may be sent in parallel.
func (m *Migration) buildRequests(s phase.Steps) (functions []func(context.Context) error) {
	for _, ip := range s.PublicIPs {
		functions = append(functions, func(ctx context.Context) error {
			_, err := m.cfg.Azure.PutPublicIP(ctx, ip)
			return wrapError("public IP "+ip.ID.Name, err)
		})
	}
	for _, i := range s.Interfaces {
		functions = append(functions, func(ctx context.Context) error {
			_, err := m.cfg.Azure.PutInterface(ctx, i)
			return wrapError("network interface "+i.ID.Name, err)
		})
	}
	for _, set := range s.ScaleSets {
		functions = append(functions, func(ctx context.Context) error { return wrapError("scale set "+set.ID.Name, m.writeScaleSet(ctx, set)) })
	}
	for _, b := range s.Delete {
		functions = append(functions, func(ctx context.Context) error {
			return wrapError(describeLoadBalancer(b.ID), m.cfg.Azure.DeleteLoadBalancer(ctx, b))
		})
	}
	for _, b := range s.Put {
		functions = append(functions, func(ctx context.Context) error {
			_, err := m.cfg.Azure.PutLoadBalancer(ctx, b)
			m.mu.Lock()
			m.putErrors[b.ID.Key()] = err
			m.mu.Unlock()
			return wrapError(describeLoadBalancer(b.ID), err)
		})
	}
	return functions
}

func describeLoadBalancer(id lb.LoadBalancerID) string { return "load balancer " + id.Name }

func wrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}

// writeScaleSet is sequential: Azure accepts one write per scale set at a time.
func (m *Migration) writeScaleSet(ctx context.Context, s phase.ScaleSetSteps) error {
	if s.Model != nil {
		return m.writeModel(ctx, *s.Model)
	}
	if err := m.cfg.Azure.UpgradeInstances(ctx, s.ID, s.Upgrade); err != nil {
		return err
	}
	var failed []error
	for _, i := range s.Write {
		fresh, err := m.cfg.Azure.GetInstance(ctx, s.ID, i.ID) // a list has no etags
		if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
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
	inSync := map[string]bool{}
	for _, i := range instances {
		inSync[i.ID] = i.LatestModel
	}
	m.mu.Lock()
	m.inSync[model.ID.Key()], m.waitingSince[model.ID.Key()] = inSync, time.Now()
	m.mu.Unlock()
	_, err = m.cfg.Azure.PatchModel(ctx, model)
	return err
}
