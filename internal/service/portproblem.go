// SPDX-License-Identifier: Apache-2.0

package service

import (
	"regexp"
	"strconv"
	"strings"
)

// What is wrong with a port, in words for its status.
const (
	PortProtocol   = "UnsupportedProtocol" // Azure Load Balancer does not forward it
	PortNodePort   = "NoNodePort"          // it needs one, for its rule or its probe
	PortAnnotation = "InvalidAnnotation"   // an annotation of the port is refused
)

// fieldOfPort finds the number of a port, and which of its fields it is.
var (
	fieldOfPort      = regexp.MustCompile(`^port ([1-9][0-9]{0,4}): (.+)$`)
	annotationOfPort = regexp.MustCompile(`^port_([1-9][0-9]{0,4})_`)
)

// PortRef is a port of a Service. One without a protocol stands for the port of each protocol.
type PortRef struct {
	Port     int32
	Protocol string
}

// OfPort says of which port a problem is, and what is wrong with that; the zero PortRef for one of the
// Service as a whole.
func (p Problem) OfPort() (port PortRef, why string) {
	if bare, is := strings.CutPrefix(p.Field, prefix); is {
		if n := number(annotationOfPort.FindStringSubmatch(bare)); n != 0 {
			return PortRef{Port: n}, PortAnnotation
		}
		return PortRef{}, ""
	}
	m := fieldOfPort.FindStringSubmatch(p.Field)
	if m == nil {
		return PortRef{}, ""
	}
	if m[2] == fieldProtocol {
		return PortRef{number(m), p.Value}, PortProtocol
	}
	return PortRef{Port: number(m)}, PortNodePort
}

func number(match []string) int32 {
	if match == nil {
		return 0
	}
	n, err := strconv.ParseInt(match[1], 10, 32)
	if err != nil { // the pattern lets none through
		return 0
	}
	return int32(n)
}
