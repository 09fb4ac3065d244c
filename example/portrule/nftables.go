package main

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	tableName  = "portrule"
	chainName  = "input"
	bufferSize = 16 << 20 // a table is sent at once
)

var protocols = map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}

// nft is the agent's table in the packet filter of the kernel. It rejects connections to
// the ports of PortRules from other addresses than their sources. What it accepts, the
// tables of others may still reject: the kernel asks them all.
type nft struct {
	netns int // a network namespace, or 0 for that of the process
}

func (n *nft) connect(options ...nftables.ConnOption) (*nftables.Conn, error) {
	buffers := func(c *netlink.Conn) error {
		_ = c.SetReadBuffer(bufferSize) // without it, only huge tables fail
		return c.SetWriteBuffer(bufferSize)
	}
	return nftables.New(append(options, nftables.WithNetNSFd(n.netns), nftables.WithSockOptions(buffers))...)
}

// Sync replaces the table if it is not as desired. The kernel does so at once: no packet
// finds it half done.
func (n *nft) Sync(ctx context.Context, all []access) error {
	conn, err := n.connect(nftables.AsLasting())
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

// table is the content of the table as values, desired or actual.
type table struct {
	Chains []nftables.Chain // without pointers to the table
	Rules  []line
	Sets   map[string][]nftables.SetElement // by key
}

// line is a rule in the chain.
type line struct {
	Exprs   []expr.Any
	Comment string
}

// desiredTable returns nil if there is nothing to restrict: then there is no table.
func desiredTable(all []access) *table {
	if len(all) == 0 {
		return nil
	}
	// The priority is before the tables of most others.
	priority, policy := nftables.ChainPriority(-10), nftables.ChainPolicyAccept
	t := &table{Sets: map[string][]nftables.SetElement{}, Chains: []nftables.Chain{{
		Name: chainName, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: &priority, Policy: &policy,
	}}}
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	t.add("a node to itself", []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, equals(append([]byte("lo"), make([]byte, 14)...)...), accept,
	})
	t.add("connections that exist", []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: 4, Xor: make([]byte, 4),
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, accept,
	})
	for _, a := range all {
		for _, version := range a.families() {
			match := a.port.match(version)
			if a.sources != nil {
				set := fmt.Sprintf("from-%s-ipv%d", a.rule, version)
				t.Sets[set] = elements(a.ranges(version))
				match = append(match, address(version, saddr), &expr.Lookup{SourceRegister: 1, SetName: set})
			}
			t.add(a.rule, append(match, accept))
		}
	}
	for _, p := range portsOf(all) {
		reject := &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}
		t.add("all others", append(p.match(p.version()), reject))
	}
	return t
}

func (t *table) add(comment string, exprs []expr.Any) {
	t.Rules = append(t.Rules, line{exprs, comment})
}

// match returns what compares a packet with a port, for an IP version or for both.
func (p port) match(version int) []expr.Any {
	var exprs []expr.Any
	if version != 0 {
		family := map[int]byte{4: unix.NFPROTO_IPV4, 6: unix.NFPROTO_IPV6}[version]
		exprs = append(exprs, &expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equals(family))
	}
	if p.host.IsValid() {
		exprs = append(exprs, address(version, daddr), equals(p.host.AsSlice()...))
	}
	return append(exprs,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equals(protocols[p.protocol]),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		equals(binaryutil.BigEndian.PutUint16(p.number)...))
}

func equals(data ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

// saddr and daddr are the offsets of the addresses in the IP header, by version.
var (
	saddr = map[int]uint32{4: 12, 6: 8}
	daddr = map[int]uint32{4: 16, 6: 24}
)

// address loads an address of a packet.
func address(version int, offset map[int]uint32) expr.Any {
	length := map[int]uint32{4: 4, 6: 16}[version]
	return &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset[version], Len: length}
}

// elements returns the elements of a set: the first address of each range and, unless there
// is none, the one after its last.
func elements(ranges []netipx.IPRange) []nftables.SetElement {
	var all []nftables.SetElement
	for _, r := range ranges {
		all = append(all, nftables.SetElement{Key: r.From().AsSlice()})
		if after := r.To().Next(); after.IsValid() {
			all = append(all, nftables.SetElement{Key: after.AsSlice(), IntervalEnd: true})
		}
	}
	return all
}

// replace makes the table like this one, in one transaction.
func (t *table) replace(conn *nftables.Conn) error {
	own := conn.AddTable(&nftables.Table{Name: tableName, Family: nftables.TableFamilyINet})
	conn.DelTable(own) // AddTable is for the case that it does not exist
	if t == nil {
		return conn.Flush()
	}
	conn.AddTable(own)
	for name, all := range t.Sets {
		set := &nftables.Set{Table: own, Name: name, KeyType: nftables.TypeIPAddr, Interval: true}
		if strings.HasSuffix(name, "6") {
			set.KeyType = nftables.TypeIP6Addr
		}
		if err := conn.AddSet(set, all); err != nil {
			return err
		}
	}
	for _, chain := range t.Chains {
		chain.Table = own
		conn.AddChain(&chain)
		for _, l := range t.Rules {
			comment := userdata.AppendString(nil, userdata.TypeComment, l.Comment)
			conn.AddRule(&nftables.Rule{Table: own, Chain: &chain, Exprs: l.Exprs, UserData: comment})
		}
	}
	return conn.Flush()
}

// readTable returns the table as it is, or nil if there is none.
func readTable(conn *nftables.Conn) (*table, error) {
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	i := slices.IndexFunc(tables, func(t *nftables.Table) bool { return t.Name == tableName })
	if err != nil || i < 0 {
		return nil, err
	}
	own, t := tables[i], &table{Sets: map[string][]nftables.SetElement{}}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, err
	}
	for _, chain := range chains {
		if chain.Table.Name != tableName {
			continue
		}
		rules, err := conn.GetRules(own, chain)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			comment, _ := userdata.GetString(rule.UserData, userdata.TypeComment)
			t.add(comment, rule.Exprs)
		}
		chain.Table = nil
		t.Chains = append(t.Chains, *chain)
	}
	sets, err := conn.GetSets(own)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		all, err := conn.GetSetElements(set)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b nftables.SetElement) int { return bytes.Compare(a.Key, b.Key) })
		t.Sets[set.Name] = all
	}
	return t, nil
}

// Watch calls a function after each change of nftables, until the context ends. The sync
// finds out whether it was one of the table: to read it costs less than to decide it here.
func (n *nft) Watch(ctx context.Context, changed func()) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		conn, err := n.connect(nftables.AsLasting())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Watching nftables failed; trying again")
			return
		}
		defer func() { _ = conn.CloseLasting() }()
		defer context.AfterFunc(ctx, func() { _ = conn.CloseLasting() })()
		changes, err := conn.AddGenerationalMonitor(nftables.NewMonitor())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Watching nftables failed; trying again")
			return
		}
		changed()           // what happened before was not notified
		for range changes { // closed if the kernel has lost notifications
			changed()
		}
	}, time.Second)
}
