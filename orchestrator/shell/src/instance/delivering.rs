//! What becomes of what was to be delivered to hosts.

use super::{Action, Instance, Role, Warning};
use crate::clock::Now;
use crate::delivery::Delivered;

impl Instance {
    /// The other site to which the stream of what hosts are to have belongs, if this instance leads and it does.
    pub fn crossed_site(&self) -> Option<&str> {
        self.delivery.crossed_site().filter(|_| self.is_leading())
    }

    /// What providers have said counts in what is decided and shown from here on.
    pub(super) fn show_polls(&mut self) {
        self.inventory.polled(Some(self.delivery.polls().clone()).filter(|_| self.is_leading()));
    }

    /// What the committed state has of what providers have said counts from here on.
    pub(super) fn replies_decided(&mut self, now: Now) {
        let Role::Leading(leading) = &mut self.role else { return };
        let tickets = leading.take_decided_replies();
        if !tickets.is_empty() {
            self.delivery.replies_decided(now, &tickets);
            self.show_polls();
        }
    }

    pub(super) fn delivered(&mut self, now: Now, delivered: Delivered) {
        let input = match delivered {
            Delivered::Fenced { epoch, outcome } => {
                let crossed = self.delivery.fenced(now, epoch, outcome);
                self.out.extend(crossed.map(|site| Action::Warn(Warning::CrossedSite { site })));
                None
            }
            Delivered::ManifestPublished { epoch, order, outcome } => {
                self.delivery.manifest_published(now, epoch, order, outcome)
            }
            Delivered::ProviderAnswered { epoch, ticket, reply } => {
                let state = &self.follower.state;
                let inputs = self.delivery.answered(now, epoch, (ticket, reply), state);
                self.show_polls();
                if let Role::Leading(leading) = &mut self.role {
                    leading.push_reply(inputs, ticket);
                }
                None
            }
            Delivered::TokenDrawn { provider, digest } => self.delivery.token_drawn(now, &provider, digest),
        };
        if let Some(input) = input {
            self.decide_on(input);
        }
    }
}
