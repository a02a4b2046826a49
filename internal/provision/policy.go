// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Policy says how an attempt that failed is followed by others.
type Policy struct {
	// Retries is how many attempts follow the first one.
	Retries int
	// Initial is the wait before the first retry; each further one is Factor times as long, and
	// none longer than MaxInterval.
	Initial     time.Duration
	Factor      float64
	MaxInterval time.Duration
	// Horizon bounds all waits together; 0 is no bound.
	Horizon time.Duration
	// AttemptTimeout ends an attempt that takes longer.
	AttemptTimeout time.Duration
	// MinInterval is the shortest time from the end of an attempt to the begin of the next one, whoever asks for it.
	MinInterval time.Duration
}

// minInterval is the MinInterval unless an administrator has set a shorter initialInterval.
const minInterval = 10 * time.Second

// BuiltIn is what counts where nobody says otherwise: six attempts, 30 s apart and then longer.
func BuiltIn() Policy {
	return Policy{Retries: 5, Initial: 30 * time.Second, Factor: 2, MaxInterval: time.Hour, AttemptTimeout: 30 * time.Minute, MinInterval: minInterval}
}

// Wait is how long the n-th retry is waited for, n from 1, after the attempt before it has ended.
func (p Policy) Wait(n int) time.Duration {
	if n < 1 {
		return 0
	}
	wait := float64(p.Initial) * math.Pow(p.Factor, float64(n-1)) // +Inf is longer than MaxInterval, too
	if !(wait < float64(p.MaxInterval)) {
		return p.MaxInterval
	}
	return time.Duration(wait)
}

// Validate says what is wrong with a policy.
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

// Words are the values of a policy as somebody wrote them; an empty one says nothing.
type Words struct {
	Retries                                                       *int32
	InitialInterval, Factor, MaxInterval, Horizon, AttemptTimeout string
}

// Layer is whose words they are.
type Layer struct {
	From  string
	Words Words
	// Admin is whether only an administrator of the cluster can write them.
	Admin bool
}

const (
	// FromBuiltIn is the source of a value that no policy sets.
	FromBuiltIn = "built-in"
	// FromMinimum is the source of an interval that was set shorter than the minimum.
	FromMinimum = "minimum"
)

// Value is one of a policy, and whose word it is.
type Value struct{ Name, Value, From string }

// Resolve lays later layers over earlier ones, value by value. An error names whose word cannot be
// read.
func Resolve(layers ...Layer) (Policy, []Value, error) {
	p := BuiltIn()
	from := map[string]string{}
	var errs []error
	for _, l := range layers {
		errs = append(errs, l.over(&p, from))
		if l.Admin && l.Words.InitialInterval != "" {
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
	var all []Value
	for _, v := range []Value{
		{Name: "retries", Value: strconv.Itoa(p.Retries)}, {Name: "initialInterval", Value: p.Initial.String()},
		{Name: "factor", Value: strconv.FormatFloat(p.Factor, 'f', -1, 64)}, {Name: "maxInterval", Value: p.MaxInterval.String()},
		{Name: "horizon", Value: p.Horizon.String()}, {Name: "attemptTimeout", Value: p.AttemptTimeout.String()},
	} {
		v.From = FromBuiltIn
		if who, ok := from[v.Name]; ok {
			v.From = who
		}
		all = append(all, v)
	}
	return p, all, refused
}

// over lays the words of a layer over a policy.
func (l Layer) over(p *Policy, from map[string]string) error {
	var errs []error
	if n := l.Words.Retries; n != nil {
		p.Retries, from["retries"] = int(*n), l.From
	}
	if text := l.Words.Factor; text != "" {
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
		{"initialInterval", l.Words.InitialInterval, &p.Initial}, {"maxInterval", l.Words.MaxInterval, &p.MaxInterval},
		{"horizon", l.Words.Horizon, &p.Horizon}, {"attemptTimeout", l.Words.AttemptTimeout, &p.AttemptTimeout},
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
