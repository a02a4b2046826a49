// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"net/netip"

	"weir.dev/weir/internal/lb"
)

var (
	poolFields           = []string{"name", "etag", keyProperties}
	poolPropertyFields   = []string{"provisioningState", keyNetwork, keyAddresses, "backendIPConfigurations", "outboundRule", "outboundRules", keyDrainPeriod}
	addressFields        = []string{"name", keyProperties}
	addressPropertyNames = []string{"ipAddress", "adminState", keyNetwork, "networkInterfaceIPConfiguration"}
)

// poolScan decodes a pool in one pass over its valid text, like armPool.
type poolScan struct {
	pool                    lb.Pool
	withAddress, interfaces int
	hasInterfaceEntry       bool
}

// scanPool returns the pool with the name in the text; false if encoding/json has to decode it.
func scanPool(id lb.PoolID, doc Document) (lb.Pool, bool) {
	s := poolScan{pool: lb.Pool{ID: id, Origin: doc}}
	s.pool.ID.Name = ""
	ok := scanFields(doc.Text, poolFields, func(i int, value []byte) bool {
		switch poolFields[i] {
		case "name":
			if string(value) == `"`+id.Name+`"` { // the caller's text is in memory already
				s.pool.ID.Name = id.Name
			}
			return scanString(value, &s.pool.ID.Name)
		case "etag":
			return json.Unmarshal(value, &s.pool.Etag) == nil
		}
		return scanFields(value, poolPropertyFields, s.scanProperty)
	})
	s.pool.Etag = etagOrAny(s.pool.Etag)
	s.pool.NIC = s.hasInterfaceEntry || s.interfaces > 0 && s.withAddress == 0
	return s.pool, ok
}

func (s *poolScan) scanProperty(i int, value []byte) (ok bool) {
	switch poolPropertyFields[i] {
	case "provisioningState":
		var state string
		ok = scanString(value, &state)
		s.pool.Provisioning = provisioningState(state)
	case keyNetwork:
		var network armReference
		ok = scanReference(value, &network)
		s.pool.VirtualNetwork = network.ID
	case keyAddresses:
		n := 0
		if ok = scanItems(value, func([]byte) { n++ }); n == 0 {
			return ok
		}
		s.pool.Addresses = make([]lb.Address, 0, n)
		scanItems(value, func(item []byte) { ok = ok && s.scanAddress(item) })
	case "backendIPConfigurations":
		s.interfaces, ok = countItems(value)
	case "outboundRule":
		var rule armReference
		ok = scanReference(value, &rule)
		s.pool.Outbound = true
	case "outboundRules":
		var n int
		n, ok = countItems(value)
		s.pool.Outbound = s.pool.Outbound || n > 0
	case keyDrainPeriod:
		ok = json.Unmarshal(value, &s.pool.DrainSeconds) == nil
	}
	return ok
}

func (s *poolScan) scanAddress(item []byte) bool {
	var a lb.Address
	var nic armReference
	isEntry, hasText := false, false
	ok := scanFields(item, addressFields, func(i int, value []byte) bool {
		if addressFields[i] == "name" {
			return scanString(value, &a.Name)
		}
		return scanFields(value, addressPropertyNames, func(i int, value []byte) bool {
			switch addressPropertyNames[i] {
			case "ipAddress":
				var text string
				ok := scanString(value, &text)
				a.IP, _ = netip.ParseAddr(text)
				hasText = text != ""
				return ok
			case "adminState":
				a.AdminState = s.lastAddress().AdminState // most are equal
				return scanString(value, &a.AdminState)
			case keyNetwork:
				network := armReference{s.lastAddress().VirtualNetwork}
				ok := scanReference(value, &network)
				a.VirtualNetwork = network.ID
				return ok
			}
			isEntry = true
			return scanReference(value, &nic)
		})
	})
	if hasText {
		s.withAddress++
	} else if isEntry {
		s.hasInterfaceEntry = true
	}
	if !a.IP.IsValid() && isEntry {
		a.Interface = nic.ID
	}
	s.pool.Addresses = append(s.pool.Addresses, a)
	return ok
}

func (s *poolScan) lastAddress() lb.Address {
	if n := len(s.pool.Addresses); n > 0 {
		return s.pool.Addresses[n-1]
	}
	return lb.Address{}
}
