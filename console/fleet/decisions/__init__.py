"""What a decision needs: the inbox, what an option grants, which risk an action bears, and whether a key may decide."""
