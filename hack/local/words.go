package main

import (
	"slices"

	"github.com/samplecrd/network-controller/pkg/glass"
)

// words are a text in both languages.
type words struct{ english, chinese string }

// in returns a text in the language of the tour.
func (t *tour) in(w words) string {
	if t.language == "zh" {
		return w.chinese
	}
	return w.english
}

// step is a step of the tour: what it does, until which sync it lasts, and what the
// user learns.
type step struct {
	title  words
	play   func(*tour)
	until  func(journey) bool
	lesson words
}

func succeeded(j journey) bool { return !j.Failed }
func repaired(j journey) bool {
	return !j.Failed && slices.ContainsFunc(j.Moments, func(m *glass.Moment) bool { return m.Stage == glass.StageApply })
}
func retried(j journey) bool { return j.Failed && j.Retry != nil && j.Retry.Failures >= 3 }

var steps = []step{
	{words{"Create a Network", "创建一个 Network"}, create, succeeded, words{
		"The watch delivered the object, the informer stored it, and only then called the event handler, which added the\n" +
			"key to the queue. A worker took the key and compared desired and actual state. Each step was one request:\n" +
			"to Kubernetes for finalizer and status, and to Neutron for network and subnet.",
		"watch 送来对象，Informer 先存入本地缓存，再调用事件处理函数；处理函数只把 key 放进队列。\n" +
			"worker 取出 key，比较期望状态和实际状态，每一步只有一个请求：finalizer 和 status 发给 Kubernetes，\n" +
			"网络和子网发给 Neutron。",
	}},
	{words{"Edit it", "修改它"}, edit, succeeded, words{
		"One step changed Neutron, because only the gateway differs. The controller's own status write came back as an\n" +
			"update, which the handler skipped: look at the counter beside it.",
		"只有网关不同，所以只有一步改变了 Neutron。控制器自己写的 status 也是一个更新事件，\n" +
			"事件处理函数跳过了它：看旁边“跳过”的次数。",
	}},
	{words{"Edit it ten times at once", "同时修改十次"}, tenEdits, succeeded, words{
		"The queue has keys, not events: a key that is in it already is not added again. A sync reads the latest object,\n" +
			"so the edits before it cost nothing. This is level-triggered.",
		"队列里放的是 key，不是事件：已在队列中的 key 不会再放一次。同步时读到的是最新的对象，\n" +
			"前几次修改不用多发一个请求。这就是水平触发。",
	}},
	{words{"Somebody deletes the network in Neutron", "有人在 Neutron 里删掉了网络"}, drift, repaired, words{
		"Kubernetes sent no event, because nothing changed there. The periodic list of Neutron's state found the\n" +
			"difference, and added the key. The same sync created the network again.",
		"Kubernetes 里什么都没变，所以没有事件。控制器定期列举 Neutron 的状态，发现了漂移，\n" +
			"把 key 放进队列；还是同样的一次同步，重新创建了网络。",
	}},
	{words{"Neutron fails", "Neutron 出故障"}, failure, retried, words{
		"Each failed sync added the key with AddRateLimited. The time until the next attempt grows with each failure, and\n" +
			"the page counts down. The worker is free for other keys.",
		"每次同步失败，key 都通过 AddRateLimited 放回。失败越多，等得越久，页面上在倒计时。\n" +
			"worker 并不等待，可以处理别的 key。",
	}},
	{words{"Neutron heals", "Neutron 恢复"}, heal, succeeded, words{
		"No user had to act: the next attempt succeeded, and Forget removed the count of failures.",
		"谁也不用做什么：下一次尝试成功了，Forget 清除了失败次数。",
	}},
	{words{"Delete it", "删除它"}, remove, succeeded, words{
		"The object stayed until its finalizer was removed, after Neutron had confirmed the deletion. So a deletion is\n" +
			"not lost, even if the controller is down when it comes.",
		"Neutron 确认删除之后，finalizer 才被移除，对象才消失。\n" +
			"所以即使删除时控制器没有运行，这次删除也不会丢。",
	}},
}

var (
	starting = words{"Starting a local Kubernetes and the controller.", "正在启动本地 Kubernetes 和控制器。"}
	ready    = words{
		"Open this page beside the terminal: %s\n" +
			"Neutron needs half a second for each request. For commands of your own: export KUBECONFIG=%s",
		"请在终端旁边打开这个页面：%s\nNeutron 处理每个请求需要半秒。想自己输入命令：export KUBECONFIG=%s",
	}
	pressEnter = words{"Press Enter to continue.", "按回车继续。"}
	ended      = words{
		"That was the whole path. Next: docs/learn, and make run.",
		"整条路径就是这些。接下来：docs/zh-CN/learn 和 make run。",
	}
	healed = words{"Neutron answers again.", "Neutron 恢复响应。"}
)
