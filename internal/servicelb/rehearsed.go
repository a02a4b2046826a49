// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
)

// RefusedError says why no load balancer takes a Service; any other error of Request is that of a read.
type RefusedError struct{ error }

// Unwrap returns why.
func (e *RefusedError) Unwrap() error { return e.error }

// Request returns what would be asked of a Locator for a Service, or why it is refused. A request
// without load balancers is for one of which Azure holds nothing, and which wants nothing.
func (r *Reconciler) Request(ctx context.Context, by Locator, s Service) (req balancer.Request, problems string, err error) {
	d, err := r.desired(ctx, s)
	if err != nil {
		return req, "", err
	}
	if len(d.Problems) > 0 {
		return req, wrongWith(d.Problems), nil
	}
	req, _, err = r.request(ctx, by, s, r.States.of(s).Placement.Record, d)
	if _, ofAzure := errors.AsType[*fault.Fault](err); err != nil && !ofAzure {
		err = &RefusedError{err}
	}
	return req, "", err
}

// WriteDown makes and deletes the BackendPools of a request that was rehearsed, as Reconcile does when
// one is done, and its record.
func (r *Reconciler) WriteDown(ctx context.Context, res balancer.Result) error {
	if err := r.dropGone(ctx, res); err != nil {
		return err
	}
	s, there := r.cfg.Cluster.Service(res.Service)
	switch {
	case !there || res.Err != nil:
		return nil
	case res.Desired == nil:
		return r.cfg.Ledger.DropPools(ctx, s, nil, res.Without)
	}
	if err := r.record(ctx, s, &r.States.of(s).State, []string{res.On.Name}, res.Groups); err != nil {
		return err
	}
	return r.MakePools(ctx, s, res)
}

// WhyKept says why a Service of another class keeps what it has, and what people can do; empty if it
// does not.
func (r *Reconciler) WhyKept(s Service) string { return r.cfg.Settings.whyKept(s) }
