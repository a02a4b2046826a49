// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Bounds of what follows a schedule, in virtual time.
const (
	// levelWithin is how long after the last fault all has to be level: back-offs have grown up to
	// 1,000 s, and a pool that was given up is looked at after 1, 2, 4 and 8 minutes. In half of
	// the worlds a drift period is an hour, which does not make up for news that are lost.
	levelWithin = 25 * time.Minute
	// settled is when what was read again is on record, beside a drift period.
	settled = 25 * time.Minute
	// readsPer bounds what is read for each step and each minute of a schedule.
	readsPer = 20
	// restReads bounds what is read in an hour without a change.
	restReads = 1500
)

// Play makes a schedule's steps on a stage, and the checks: what never may happen always, all
// others once faults have ended. It has to be called in a bubble. The log says what happened.
func Play(schedule Schedule, settle func()) (log string, err error) {
	schedule.Settle = settle
	s, err := New(schedule.Options)
	if err != nil {
		return "", err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		err = errors.Join(err, s.Close())
		log = s.Log()
	}()
	for n := range schedule.Nodes {
		if err := s.AddNode(n); err != nil {
			return "", err
		}
	}
	for _, namespace := range []string{"shop", "blog"} {
		if err := s.PublicIP(peoplesIP(namespace)); err != nil {
			return "", err
		}
	}
	s.Start()
	for _, step := range schedule.Steps {
		s.Pass(step.After)
		s.log.note("%s", step.Text)
		if err := step.do(s); err != nil {
			if !passes(err) {
				return "", fmt.Errorf("%s: %w", step.Text, err)
			}
			s.log.note("which changes nothing: %v", err)
		}
		if err := s.always(); err != nil {
			return "", err
		}
	}
	s.EndFaults()
	s.log.note("all faults have ended")
	if _, reads := s.since(); reads > readsPer*(len(schedule.Steps)+int(time.Since(s.start)/time.Minute)) {
		return "", fmt.Errorf("%d reads for %d steps in %s", reads, len(schedule.Steps), time.Since(s.start))
	}
	ended := time.Now()
	if err := s.Settles(levelWithin); err != nil {
		return "", err
	}
	s.log.note("all is level after %s", time.Since(ended))
	s.calm = true
	if err := s.AddForeign(clusterName+"/"+clusterName, "10.0.9.9"); err != nil && !passes(err) {
		return "", err
	}
	s.Pass(settled + time.Duration(*s.cfg.DriftSeconds)*time.Second)
	return "", s.Rests(restReads)
}

// passes reports whether a step was about what is not there, or is there already.
func passes(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || strings.Contains(err.Error(), "there is no pool")
}

// always returns what does not hold that has to hold at any time.
func (s *Stage) always() error {
	return errors.Join(append(s.named(), s.Broken())...)
}
