package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"reflect"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

const tableName = "portrule"
const bufferSize = 16 << 20 // a table is sent at once

var protocols = map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// nft is the agent's table in the packet filter of the kernel. It rejects connections to
// the ports of PortRules from other addresses than their sources. What it accepts, the
// tables of others may still reject: the kernel asks them all.
type nft struct {
	netns int // a network namespace, or 0 for that of the process
}

func (n *nft) connect() (*nftables.Conn, error) {
	buffers := func(c *netlink.Conn) error {
		_ = c.SetReadBuffer(bufferSize) // without it, only huge tables fail
		return c.SetWriteBuffer(bufferSize)
	}
	return nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(n.netns), nftables.WithSockOptions(buffers))
}

// Sync replaces the table if it is not as desired. The kernel does so at once: no packet
// finds it half done.
func (n *nft) Sync(ctx context.Context, all []access) error {
	conn, err := n.connect()
	if err != nil {
		return fmt.Errorf("connecting to nftables: %w", err)
	}
	defer func() { _ = conn.CloseLasting() }()
	actual, err := readTable(conn)
	if err != nil {
		return fmt.Errorf("reading table inet %s: %w", tableName, err)
	}
	desired := desiredTable(all)
	if reflect.DeepEqual(actual, desired) {
		return nil
	}
	klog.FromContext(ctx).Info("Replacing the nftables table", "table", tableName, "rules", len(all))
	if err := desired.replace(conn); err != nil {
		return fmt.Errorf("replacing table inet %s: %w", tableName, err)
	}
	return nil
}

// table is the content of the table as values, desired or actual: without handles, and
// without pointers to the table.
type table struct {
	chains []nftables.Chain
	rules  []nftables.Rule
}

// desiredTable is empty if there is nothing to restrict: then there is no table.
func desiredTable(all []access) (t table) {
	if len(all) == 0 {
		return t
	}
	// The priority is before the tables of most others.
	priority, policy := nftables.ChainPriority(-10), nftables.ChainPolicyAccept
	t.chains = []nftables.Chain{{
		Name: "input", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput,
		Priority: &priority, Policy: &policy,
	}}
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	t.add("a node to itself",
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, equals(append([]byte("lo"), make([]byte, 14)...)...), accept)
	t.add("connections that exist",
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: 4, Xor: make([]byte, 4),
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, accept)
	reject := &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}
	var others table
	rejected := map[port]bool{}
	for _, a := range all {
		t.add(a.rule, append(a.port.match(a.source), accept)...)
		if !rejected[a.port] {
			others.add("all others", append(a.port.match(netip.Prefix{}), reject)...)
			rejected[a.port] = true
		}
	}
	t.rules = append(t.rules, others.rules...) // what is accepted comes first
	return t
}

func (t *table) add(comment string, exprs ...expr.Any) {
	rule := nftables.Rule{Exprs: exprs, UserData: userdata.AppendString(nil, userdata.TypeComment, comment)}
	t.rules = append(t.rules, rule)
}

// match compares a packet with a port and, if it is valid, with a source.
func (p port) match(source netip.Prefix) []expr.Any {
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equals(protocols[p.protocol]),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(p.number)...),
	}
	if p.host.IsValid() {
		exprs = append(exprs, within(netip.PrefixFrom(p.host, p.host.BitLen()), 16, 24)...)
	}
	if source.IsValid() {
		exprs = append(exprs, within(source, 12, 8)...)
	}
	return exprs
}

// within compares an address of a packet with a prefix. Its offset in the header depends
// on the IP version.
func within(prefix netip.Prefix, offset4, offset6 uint32) []expr.Any {
	family, offset, address := byte(unix.NFPROTO_IPV4), offset4, prefix.Addr().AsSlice()
	if prefix.Addr().Is6() {
		family, offset = unix.NFPROTO_IPV6, offset6
	}
	length := uint32(len(address)) //nolint:gosec // 4 or 16
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equals(family),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: length, Xor: make([]byte, length),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		},
		equals(address...),
	}
}

func equals(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

// replace makes the table like this one, in one transaction.
func (t table) replace(conn *nftables.Conn) error {
	own := conn.AddTable(&nftables.Table{Name: tableName, Family: nftables.TableFamilyINet})
	conn.DelTable(own) // AddTable is for the case that it does not exist
	if len(t.chains) > 0 {
		conn.AddTable(own)
	}
	for _, chain := range t.chains {
		chain.Table = own
		conn.AddChain(&chain)
		for _, rule := range t.rules {
			rule.Table, rule.Chain = own, &chain
			conn.AddRule(&rule)
		}
	}
	return conn.Flush()
}

// readTable returns the table as it is. It is empty if there is none.
func readTable(conn *nftables.Conn) (t table, err error) {
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	for _, chain := range chains {
		if chain.Table.Name != tableName {
			continue
		}
		rules, err := conn.GetRules(chain.Table, chain)
		if err != nil {
			return t, err
		}
		for _, rule := range rules {
			t.rules = append(t.rules, nftables.Rule{Exprs: rule.Exprs, UserData: rule.UserData})
		}
		chain.Table = nil
		t.chains = append(t.chains, *chain)
	}
	return t, err
}

// Watch calls a function after each change of nftables. The sync finds out whether it was
// one of the table: to read it costs less than to decide it here. A change of firewalld is
// one of nftables, too.
func (n *nft) Watch(ctx context.Context, changed func()) error {
	conn, err := n.connect()
	if err != nil {
		return fmt.Errorf("connecting to nftables: %w", err)
	}
	defer func() { _ = conn.CloseLasting() }()
	defer context.AfterFunc(ctx, func() { _ = conn.CloseLasting() })()
	changes, err := conn.AddGenerationalMonitor(nftables.NewMonitor())
	if err != nil {
		return fmt.Errorf("watching nftables: %w", err)
	}
	changed()           // what happened before was not notified
	for range changes { // closed if the kernel has lost notifications
		changed()
	}
	return nil
}
