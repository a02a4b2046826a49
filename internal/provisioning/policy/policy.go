// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Policy defines when failed attempts are retried.
type Policy struct {
	// Retries excludes the first attempt.
	Retries int
	// Initial is the wait before the first retry; each further wait is Factor times longer, up to
	// MaxInterval.
	Initial     time.Duration
	Factor      float64
	MaxInterval time.Duration
	// Horizon bounds the sum of all waits; 0 means none.
	Horizon time.Duration
	// AttemptTimeout bounds an attempt.
	AttemptTimeout time.Duration
	// MinInterval is the minimum time between attempts, even for user requests.
	MinInterval time.Duration
}

// minInterval applies unless an administrator sets a shorter initialInterval.
const minInterval = 10 * time.Second

// DefaultPolicy returns the default policy: six attempts, 30 s apart and then longer.
func DefaultPolicy() Policy {
	return Policy{Retries: 5, Initial: 30 * time.Second, Factor: 2, MaxInterval: time.Hour, AttemptTimeout: 30 * time.Minute, MinInterval: minInterval}
}

// RetryInterval returns the wait before the n-th retry, n from 1.
func (p Policy) RetryInterval(n int) time.Duration {
	if n < 1 {
		return 0
	}
	wait := float64(p.Initial) * math.Pow(p.Factor, float64(n-1)) // +Inf is longer than MaxInterval, too
	if !(wait < float64(p.MaxInterval)) {
		return p.MaxInterval
	}
	return time.Duration(wait)
}

// Validate returns an error for an invalid policy.
func (p Policy) Validate() error {
	switch {
	case p.Retries < 0:
		return fmt.Errorf("retries %d: want 0 or more", p.Retries)
	case p.Initial < time.Second:
		return fmt.Errorf("initialInterval %s: want at least 1s", p.Initial)
	case !(p.Factor >= 1) || math.IsInf(p.Factor, 1):
		return fmt.Errorf("factor %v: want 1 or more, or waits would become shorter", p.Factor)
	case p.MaxInterval < p.Initial:
		return fmt.Errorf("maxInterval %s: want at least the initialInterval, %s", p.MaxInterval, p.Initial)
	case p.Horizon < 0:
		return fmt.Errorf("horizon %s: want more than 0, or 0 for none", p.Horizon)
	case p.AttemptTimeout < time.Second || p.AttemptTimeout > 24*time.Hour:
		return fmt.Errorf("attemptTimeout %s: want 1s to 24h", p.AttemptTimeout)
	}
	return nil
}

// RawPolicy are policy values as written by a user.
type RawPolicy struct {
	Retries                                                       *int32
	InitialInterval, Factor, MaxInterval, Horizon, AttemptTimeout string
}

// Layer is the source of policy values.
type Layer struct {
	From string
	Raw  RawPolicy
	// Admin is set if only cluster administrators can write the layer.
	Admin bool
}

const (
	// FromDefault marks a default value.
	FromDefault = "built-in"
	// FromMinimum marks an interval raised to the minimum.
	FromMinimum = "minimum"
)

// Value is an effective policy value and its source.
type Value struct{ Name, Value, From string }

// ResolvePolicy merges layers value by value; later ones win.
func ResolvePolicy(layers ...Layer) (Policy, []Value, error) {
	p := DefaultPolicy()
	from := map[string]string{}
	var errs []error
	for _, l := range layers {
		errs = append(errs, l.applyTo(&p, from))
		if l.Admin && l.Raw.InitialInterval != "" {
			p.MinInterval = min(minInterval, p.Initial)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Policy{}, nil, err
	}
	refused := p.Validate()
	for name, interval := range map[string]*time.Duration{"initialInterval": &p.Initial, "maxInterval": &p.MaxInterval} {
		if *interval < p.MinInterval {
			*interval, from[name] = p.MinInterval, FromMinimum
		}
	}
	var values []Value
	for _, v := range []Value{
		{Name: "retries", Value: strconv.Itoa(p.Retries)}, {Name: "initialInterval", Value: p.Initial.String()},
		{Name: "factor", Value: strconv.FormatFloat(p.Factor, 'f', -1, 64)}, {Name: "maxInterval", Value: p.MaxInterval.String()},
		{Name: "horizon", Value: p.Horizon.String()}, {Name: "attemptTimeout", Value: p.AttemptTimeout.String()},
	} {
		v.From = FromDefault
		if step, ok := from[v.Name]; ok {
			v.From = step
		}
		values = append(values, v)
	}
	return p, values, refused
}

func (l Layer) applyTo(p *Policy, from map[string]string) error {
	var errs []error
	if n := l.Raw.Retries; n != nil {
		p.Retries, from["retries"] = int(*n), l.From
	}
	if text := l.Raw.Factor; text != "" {
		factor, err := strconv.ParseFloat(text, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("factor %q of %s: want a number", text, l.From))
		}
		p.Factor, from["factor"] = factor, l.From
	}
	for _, d := range []struct {
		name, text string
		to         *time.Duration
	}{
		{"initialInterval", l.Raw.InitialInterval, &p.Initial}, {"maxInterval", l.Raw.MaxInterval, &p.MaxInterval},
		{"horizon", l.Raw.Horizon, &p.Horizon}, {"attemptTimeout", l.Raw.AttemptTimeout, &p.AttemptTimeout},
	} {
		if d.text == "" {
			continue
		}
		span, err := time.ParseDuration(d.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q of %s: want a time span", d.name, d.text, l.From))
		}
		*d.to, from[d.name] = span, l.From
	}
	return errors.Join(errs...)
}
