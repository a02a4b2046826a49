// SPDX-License-Identifier: Apache-2.0

package service

import (
	"regexp"
	"strconv"
	"strings"
)

// Port error reasons for the Service status.
const (
	PortProtocol   = "UnsupportedProtocol" // Azure Load Balancer does not support the protocol
	PortNodePort   = "NoNodePort"          // its rule or probe needs a node port
	PortAnnotation = "InvalidAnnotation"   // an annotation of the port is invalid
)

// fieldOfPort and annotationOfPort extract the port number, and the field.
var (
	fieldOfPort      = regexp.MustCompile(`^port ([1-9][0-9]{0,4}): (.+)$`)
	annotationOfPort = regexp.MustCompile(`^port_([1-9][0-9]{0,4})_`)
)

// PortRef is a port of a Service. Without a protocol it means the port of each protocol.
type PortRef struct {
	Port     int32
	Protocol string
}

// OfPort returns the port of a problem and its reason; the zero PortRef if the problem is not about a port.
func (p Problem) OfPort() (port PortRef, reason string) {
	if bare, ok := strings.CutPrefix(p.Field, prefix); ok {
		if n := parsePortNumber(annotationOfPort.FindStringSubmatch(bare)); n != 0 {
			return PortRef{Port: n}, PortAnnotation
		}
		return PortRef{}, ""
	}
	m := fieldOfPort.FindStringSubmatch(p.Field)
	if m == nil {
		return PortRef{}, ""
	}
	if m[2] == fieldProtocol {
		return PortRef{parsePortNumber(m), p.Value}, PortProtocol
	}
	return PortRef{Port: parsePortNumber(m)}, PortNodePort
}

func parsePortNumber(match []string) int32 {
	if match == nil {
		return 0
	}
	n, err := strconv.ParseInt(match[1], 10, 32)
	if err != nil { // the pattern excludes this
		return 0
	}
	return int32(n)
}
